import type { Grid } from "../generated/report";
import { Part, Verbatim } from "./parts";
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

function PlainTable({ grid }: { grid: Grid }) {
	return (
		<>
			{/* biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled with the keyboard */}
			<section class="table" tabIndex={0} aria-label={grid.title}>
				<table>
					<caption>{grid.title}</caption>
					{grid.head.some((title) => title !== "") && (
						<thead>
							<tr>
								{grid.head.map((title, i) => (
									<th key={`${title}-${i}`} scope="col">
										{title}
									</th>
								))}
							</tr>
						</thead>
					)}
					<tbody>
						{grid.rows.map((row) => (
							<tr key={row.join("\n")}>
								<th scope="row">{row[0]}</th>
								{row.slice(1).map((text, i) => (
									<td key={`${grid.head[i + 1]}-${i}`}>{text}</td>
								))}
							</tr>
						))}
					</tbody>
				</table>
			</section>
			{grid.note && <p class="quiet">{grid.note}</p>}
		</>
	);
}
