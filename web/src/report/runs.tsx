// SPDX-License-Identifier: Apache-2.0
import { computed, signal } from "@preact/signals";
import { Badge, Part, RunButton } from "./parts";
import { cellText, filtered, type Order, sorted } from "./run-table";
import { go, place, report } from "./state";

const order = signal<Order>({ key: "run", descending: false });
const shown = computed(() => sorted(report.value.runs, filtered(report.value.runs, place.value.filter), order.value));

/** Every run: sorted by any column, filtered by words. */
export function Runs() {
	const table = report.value.runs;
	const plain = table.columns.filter((column) => !column.key.includes("."));
	const metrics = table.columns.filter((column) => column.key.includes("."));
	return (
		<Part id="runs" title="Runs">
			<div class="chooser no-print">
				<label for="filter">Filter</label>
				<input
					id="filter"
					type="search"
					spellcheck={false}
					autocomplete="off"
					placeholder="verdict:SUSPECT  disks:8  0012"
					value={place.value.filter}
					onInput={(event) => go({ filter: event.currentTarget.value }, true)}
				/>
				<output for="filter">
					{shown.value.length} of {table.ids.length}
				</output>
			</div>
			{/* biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled with the keyboard */}
			<section class="table tall" tabIndex={0} aria-label="runs">
				<table class="runs">
					<thead>
						<tr>
							<Head name="run" title="run" />
							{plain.map((column) => (
								<Head key={column.key} name={column.key} title={column.title} numeric={column.numeric} />
							))}
							<Head name="verdict" title="verdict" />
							{metrics.map((column) => (
								<Head key={column.key} name={column.key} title={column.title} unit={column.unit} numeric />
							))}
						</tr>
					</thead>
					<tbody>
						{shown.value.map((run) => (
							<tr key={run} class={table.ids[run] === place.value.run ? "current" : undefined}>
								<th scope="row">
									<RunButton id={table.ids[run] ?? ""} />
								</th>
								{plain.map((column) => (
									<td key={column.key} class={column.numeric ? "value" : undefined}>
										{cellText(column, run)}
									</td>
								))}
								<td>
									<Badge level={table.levels[run] ?? "OK"} />
								</td>
								{metrics.map((column) => (
									<td key={column.key} class="value">
										{cellText(column, run)}
									</td>
								))}
							</tr>
						))}
					</tbody>
				</table>
				{shown.value.length === 0 && <p class="empty">No run holds all of these words.</p>}
			</section>
		</Part>
	);
}

function Head({
	name,
	title,
	unit = "",
	numeric = false,
}: {
	name: string;
	title: string;
	unit?: string;
	numeric?: boolean;
}) {
	const current = order.value.key === name;
	const sort = current ? (order.value.descending ? "descending" : "ascending") : "none";
	return (
		<th scope="col" aria-sort={sort} class={numeric ? "value" : undefined}>
			<button
				type="button"
				class="sort"
				onClick={() => {
					order.value = { key: name, descending: current && !order.value.descending };
				}}
			>
				{title}
				{unit && <small> {unit}</small>}
				<span aria-hidden="true" class="arrow">
					{current ? (order.value.descending ? "▾" : "▴") : ""}
				</span>
			</button>
		</th>
	);
}
