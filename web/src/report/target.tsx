// SPDX-License-Identifier: Apache-2.0
import { Part, PlainTable, Verbatim } from "./parts";
import { report } from "./state";

/** Whether anything is known of what was measured. */
export function hasTarget(): boolean {
	const { states, tables } = report.value.target;
	return states.length + tables.length > 0;
}

/** What was measured: pools as they describe themselves, their settings, devices and controllers. */
export function Target() {
	const { states, tables } = report.value.target;
	return (
		<Part id="target" title="Target">
			<div class="states">
				{states.map((block) => (
					<Verbatim key={block.title} {...block} />
				))}
			</div>
			{tables.map((grid) => (
				<PlainTable key={grid.title} grid={grid} />
			))}
		</Part>
	);
}
