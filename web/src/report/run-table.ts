// SPDX-License-Identifier: Apache-2.0
import type { RunTable } from "../generated/report";

export type Level = RunTable["levels"][number];

/** From trusted to refused; the order in which levels are listed and sorted. */
export const LEVELS: readonly Level[] = ["OK", "UNJUDGED", "SUSPECT", "INVALID"];

/** How the table of runs is ordered: by a column's key, `run` or `verdict`. */
export interface Order {
	key: string;
	descending: boolean;
}

function compareValues(one: unknown, other: unknown): number {
	// What isn't known comes last, whichever way numbers run.
	if (one === null || other === null) return one === other ? 0 : one === null ? 1 : -1;
	if (typeof one === "number" && typeof other === "number") return one - other;
	return String(one).localeCompare(String(other), "en", { numeric: true });
}

/** Places of the runs in order; runs that compare equal stay as they were executed. */
export function sorted(table: RunTable, places: readonly number[], order: Order): number[] {
	const value = sortKey(table, order.key);
	const way = order.descending ? -1 : 1;
	return places.toSorted((one, other) => {
		const [a, b] = [value(one), value(other)];
		const compared = compareValues(a, b);
		return (a === null || b === null ? compared : way * compared) || one - other;
	});
}

function sortKey(table: RunTable, key: string): (place: number) => unknown {
	if (key === "run") return (place) => table.ids[place];
	if (key === "verdict") return (place) => LEVELS.indexOf(table.levels[place] ?? "OK");
	const column = table.columns.find((one) => one.key === key);
	return (place) => column?.values[place] ?? null;
}

/** The text of a column at a run. */
export function cellText(column: RunTable["columns"][number], place: number): string {
	return column.texts?.[place] ?? String(column.values[place] ?? "");
}

/**
 * Places of the runs that hold every word of the filter.
 *
 * A word is looked for in the run's name, verdict and texts; `key:word` (or `key=word`) only in that column, whole.
 * `run:` takes several names between commas.
 */
export function filtered(table: RunTable, filter: string): number[] {
	const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
	const texts = table.columns.filter((column) => !isMetric(column.key));
	const holds = (word: string, place: number): boolean => {
		const [, key, wanted] = /^([^:=]+)[:=](.+)$/.exec(word) ?? [];
		const id = table.ids[place]?.toLowerCase() ?? "";
		const level = table.levels[place]?.toLowerCase() ?? "";
		if (key !== undefined && wanted !== undefined) {
			if (key === "run") return wanted.split(",").includes(id);
			if (key === "verdict") return wanted.split(",").includes(level);
			const column = table.columns.find((one) => one.key.toLowerCase() === key);
			if (column) return wanted.split(",").includes(cellText(column, place).toLowerCase());
		}
		return (
			id.includes(word) ||
			level.includes(word) ||
			texts.some((column) => cellText(column, place).toLowerCase().includes(word))
		);
	};
	return table.ids.map((_, place) => place).filter((place) => words.every((word) => holds(word, place)));
}

/** Metrics have a point in their name, factors rarely; their numbers aren't searched, or `1` would find every run. */
function isMetric(key: string): boolean {
	return key.includes(".");
}

/** A filter that finds exactly these runs. */
export function filterFor(table: RunTable, places: readonly number[]): string {
	return `run:${places.map((place) => table.ids[place]).join(",")}`;
}
