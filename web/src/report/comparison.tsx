// SPDX-License-Identifier: Apache-2.0
import type { Section, Table, TableCell, TableColumn, TableGroup } from "../generated/report";
import { Chart } from "./chart";
import { Part } from "./parts";
import { filterFor } from "./run-table";
import { go, place, report, sections } from "./state";

/** Maximum number of adjacent groups before the table is continued below; more would not fit a screen or a sheet. */
const GROUPS_ABREAST = 4;

/** Tables and charts of the chosen metric. */
export function Comparison() {
	const all = report.value.sections;
	if (all.length === 0) return null;
	const shown = sections.value;
	return (
		<Part id="comparison" title="Numbers">
			<div class="chooser no-print">
				<label for="metric">Show</label>
				<select
					id="metric"
					value={place.value.metric === "all" ? "all" : shown[0]?.name}
					onChange={(event) => go({ metric: event.currentTarget.value })}
				>
					<Options title="Metrics" sections={all.filter((one) => one.kind === "metric" && one.headline)} />
					<Options title="Views" sections={all.filter((one) => one.kind === "view")} />
					<Options title="Further metrics" sections={all.filter((one) => one.kind === "metric" && !one.headline)} />
					{all.length > 1 && <option value="all">everything, below each other</option>}
				</select>
			</div>
			{shown.map((section) => (
				<SectionView key={section.name} section={section} />
			))}
			<Elsewhere />
		</Part>
	);
}

/** Metrics that have no section here, by name: nothing that was measured goes unsaid. */
function Elsewhere() {
	const names = report.value.elsewhere;
	if (names.length === 0) return null;
	return (
		<details class="elsewhere quiet">
			<summary>
				{names.length} more {names.length === 1 ? "metric has" : "metrics have"} no table here
			</summary>
			<p>
				A run has its values of them, and <code>iolab compare RESULTS --metric NAME</code> makes a table of any:{" "}
				{names.map((name) => (
					<span key={name}>
						<code>{name}</code>{" "}
					</span>
				))}
			</p>
		</details>
	);
}

function Options({ title, sections }: { title: string; sections: Section[] }) {
	if (sections.length === 0) return null;
	return (
		<optgroup label={title}>
			{sections.map((section) => (
				<option key={section.name} value={section.name}>
					{section.kind === "metric" ? `${section.name} — ${section.title}` : section.title}
				</option>
			))}
		</optgroup>
	);
}

function SectionView({ section }: { section: Section }) {
	return (
		<article class="section" data-section={section.name}>
			<h3>
				{section.title}
				{section.kind === "metric" && section.name !== section.title && <code>{section.name}</code>}
			</h3>
			<p class="lead">
				{section.lead}{" "}
				<a class="no-print" href="#method">
					How numbers are judged
				</a>
			</p>
			{section.notes.length > 0 && (
				<ul class="notes">
					{section.notes.map((note) => (
						<li key={note}>{note}</li>
					))}
				</ul>
			)}
			<div class="charts">
				{section.charts.map((chart) => (
					<Chart key={chart.name} chart={chart} />
				))}
			</div>
			{section.tables.map((table, i) => (
				<Tables key={`${section.name}-${i}`} table={table} unit={section.unit} hasDirection={section.better !== null} />
			))}
			{section.footnotes.length > 0 && (
				<ol class="footnotes">
					{section.footnotes.map((note) => (
						<li key={note}>{note}</li>
					))}
				</ol>
			)}
		</article>
	);
}

/** A table, continued below if it has more column groups than fit side by side. */
function Tables({ table, unit, hasDirection }: { table: Table; unit: string; hasDirection: boolean }) {
	const parts: [TableGroup[], number][] = [];
	let column = 0;
	for (let i = 0; i < table.groups.length; i += GROUPS_ABREAST) {
		const groups = table.groups.slice(i, i + GROUPS_ABREAST);
		parts.push([groups, column]);
		column += groups.reduce((sum, group) => sum + group.columns.length, 0);
	}
	return (
		<>
			{parts.map(([groups, first]) => (
				<OneTable key={first} table={table} groups={groups} first={first} unit={unit} hasDirection={hasDirection} />
			))}
		</>
	);
}

function OneTable(props: { table: Table; groups: TableGroup[]; first: number; unit: string; hasDirection: boolean }) {
	const { table, groups, first, unit, hasDirection } = props;
	const columns = groups.flatMap((group) => group.columns.map((column, i) => ({ column, starts: i === 0 })));
	const titled = groups.some((group) => group.title !== "");
	const rows = table.rows.filter((row) => row.cells.slice(first, first + columns.length).some((cell) => cell !== null));
	return (
		// biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled with the keyboard
		<section class="table" tabIndex={0} aria-label={table.title || "comparison"}>
			<table>
				<caption>{[table.title, unit].filter(Boolean).join(" · ")}</caption>
				<thead>
					{titled && (
						<tr>
							<td />
							{groups.map((group) => (
								<th key={group.title} scope="colgroup" colSpan={group.columns.length} class="starts">
									{group.title}
								</th>
							))}
						</tr>
					)}
					<tr>
						<th scope="col">{table.row_title}</th>
						{columns.map(({ column, starts }, i) => (
							<th key={`${column.title}-${i}`} scope="col" class={classes(column.kind, starts && "starts")}>
								{column.title}
							</th>
						))}
					</tr>
				</thead>
				<tbody>
					{rows.map((row) => (
						<tr key={row.title} class={row.summary ? "summary" : undefined}>
							<th scope="row">{row.title}</th>
							{columns.map(({ column, starts }, i) => (
								<Cell
									key={`${column.title}-${i}`}
									cell={row.cells[first + i] ?? null}
									column={column}
									starts={starts}
									hasDirection={hasDirection}
								/>
							))}
						</tr>
					))}
				</tbody>
			</table>
		</section>
	);
}

function Cell(props: { cell: TableCell | null; column: TableColumn; starts: boolean; hasDirection: boolean }) {
	const { cell, column, starts, hasDirection } = props;
	if (!cell) return <td class={classes(starts && "starts")} />;
	const certainty = column.kind === "change" && (cell.decided === null ? "single" : !cell.decided && "undecided");
	const shade = column.kind === "change" && shadeClass(cell, hasDirection);
	const kind = classes(
		column.kind,
		starts && "starts",
		`tone-${cell.tone}`,
		certainty,
		shade,
		cell.level.toLowerCase(),
	);
	return (
		<td class={kind}>
			<CellText cell={cell} />
			{cell.marks.length > 0 && <sup>{cell.marks.join(",")}</sup>}
			{cell.sub && <small>{cell.sub}</small>}
		</td>
	);
}

/** The shade of the cover's matrix: by how much it changed, paler where that is not sure. */
export function shadeClass(cell: TableCell, hasDirection: boolean): string {
	const way = hasDirection ? (cell.shade > 0 ? "b" : "w") : "g";
	const step = cell.shade === 0 ? "s0" : `${way}${Math.abs(cell.shade)}`;
	return `${step} ${cell.decided === null ? "unt" : cell.decided ? "sig" : "ins"}`;
}

/** The number, with a link to its runs if it has any. */
function CellText({ cell }: { cell: TableCell }) {
	const ids = report.value.runs.ids;
	const words = [cell.level !== "OK" && cell.level !== "UNJUDGED" && cell.level, cell.saturated && "saturated"].filter(
		Boolean,
	);
	const text = cell.saturated ? <span class="saturated">{cell.text}</span> : cell.text;
	if (cell.runs.length === 0) return <>{text}</>;
	const names = cell.runs.map((run) => ids[run] ?? "");
	const open = () =>
		names.length === 1 ? go({ run: names[0] ?? "" }) : showRuns(filterFor(report.value.runs, cell.runs));
	return (
		<button type="button" class="number" onClick={open} title={[...words, names.join(", ")].join(" · ")}>
			{text}
			{words.length > 0 && <span class="hidden"> ({words.join(", ")})</span>}
		</button>
	);
}

/** Go to the table of runs with a filter set. */
export function showRuns(filter: string): void {
	go({ filter, run: "" });
	document.getElementById("runs")?.scrollIntoView();
	document.getElementById("filter")?.focus({ preventScroll: true });
}

function classes(...names: (string | false)[]): string | undefined {
	return names.filter(Boolean).join(" ") || undefined;
}
