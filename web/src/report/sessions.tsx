// SPDX-License-Identifier: Apache-2.0
import { Part, PlainTable } from "./parts";
import { report } from "./state";
import { Statement } from "./summary";

/** Arms that were not measured in turn, or results that are compared: what follows, and in what the arms differ. */
export function Sessions() {
	const part = report.value.sessions;
	if (part === null) return null;
	return (
		<Part id="sessions" title={part.title}>
			<div class="statement">
				<ul>
					{part.sentences.map((sentence) => (
						<Statement key={sentence.text} sentence={sentence} />
					))}
				</ul>
			</div>
			{part.tables.map((grid) => (
				<PlainTable key={grid.title} grid={grid} />
			))}
		</Part>
	);
}
