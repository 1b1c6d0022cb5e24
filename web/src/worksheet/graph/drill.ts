// SPDX-License-Identifier: Apache-2.0
import { catalogue, type GraphSpec, type Worksheet } from "../../api/worksheet";
import type { SourceFacts, StatisticFacts } from "../../generated/api";
import { breakdownOf, brokenDown, filtered, rootOf, without } from "../../lib/names";

/** A step of a drill-down: what it is called, and the statistic that answers it. */
export interface Step {
	words: string;
	statistic: string;
	kind: "series" | "stack" | "heat";
}

/** What a statistic's catalogue entry says. */
export const entryOf = (statistic: string, catalogue: readonly StatisticFacts[]): StatisticFacts | undefined =>
	catalogue.find((each) => each.name === rootOf(statistic));

/** Sources of a statistic that have all its fields, the default first. */
export function sourcesOf(statistic: string, catalogue: readonly StatisticFacts[]): SourceFacts[] {
	const bare = statistic.replaceAll(/"(?:[^"\\]|\\.)*"/g, "");
	const asked = [...bare.matchAll(/\[([a-z_]+)(?=[\]=!<>])/g)].map(([, field]) => field ?? "");
	const found = entryOf(statistic, catalogue)?.sources ?? [];
	return found.filter((each) => asked.every((field) => each.fields.includes(field)));
}

/** The field that distinguishes several recordings. */
export const HOST = "host";

/** The same graphs and time of the recording of one host. */
export function sheetOfHost(sheet: Worksheet, recording: string): Worksheet {
	const graphs = sheet.graphs.map((graph) => ({ ...graph, statistic: without(graph.statistic, HOST), highlights: [] }));
	const first = (graph: GraphSpec) => graphs.find(({ statistic }) => statistic === graph.statistic);
	return { ...sheet, name: "", recording, graphs: graphs.filter((graph) => first(graph) === graph) };
}

/** Whether single I/Os answer a graph, not readings of counters. */
export function isOfEvents({ statistic, source }: Pick<GraphSpec, "statistic" | "source">): boolean {
	const sources = sourcesOf(statistic, catalogue.value);
	const found = sources.find((each) => each.name === source) ?? sources[0];
	return found !== undefined && !found.counted;
}

/** Fields that distinguish the I/Os of a map: those that make stacks and are not fixed by a filter. */
export function fieldsOf(statistic: string, catalogue: readonly StatisticFacts[]): string[] {
	const fixed = fixedBy(statistic);
	const found = entryOf(statistic, catalogue)?.breakdowns ?? [];
	return found.filter((each) => each.kind === "stack" && !fixed.has(each.field)).map((each) => each.field);
}

/**
 * The next breakdowns of one value of a field: maps first, then further fields of its I/Os, then the number alone. A field
 * that a filter restricts to one value is left out.
 */
export function steps(statistic: string, field: string, value: string, catalogue: readonly StatisticFacts[]): Step[] {
	const own = breakdownOf(statistic);
	const base = filtered(own === field ? brokenDown(statistic, "") : statistic, field, value);
	return following(base, own === field ? "" : own, catalogue);
}

/** The next breakdowns of a range of values of a map. */
export function rangeSteps(
	statistic: string,
	range: { field: string; low: number; high: number },
	unit: string,
	catalogue: readonly StatisticFacts[],
): Step[] {
	const base = `${brokenDown(statistic, "")}[${range.field}=${bounds(range, unit)}]`;
	return following(base, range.field, catalogue);
}

/** A range as filters write it; what is open at zero stays so. */
export function bounds({ low, high }: { low: number; high: number }, unit: string): string {
	const text = (value: number) => `${Math.max(0, Math.round(value))}${unit}`;
	return `${text(low)}..${text(high)}`;
}

/** The breakdowns that can follow: `first` comes first. */
function following(name: string, first: string, catalogue: readonly StatisticFacts[]): Step[] {
	const base = brokenDown(name, "");
	const fixed = fixedBy(base);
	const found = (entryOf(base, catalogue)?.breakdowns ?? []).filter((each) => !fixed.has(each.field));
	const rank = (each: { field: string; kind: string }) => (each.field === first ? 0 : each.kind === "heat" ? 2 : 1);
	return [
		...found
			.toSorted((one, other) => rank(one) - rank(other))
			.map(({ field, kind }) => ({ words: `by ${field}`, statistic: `${base}[${field}]`, kind })),
		{ words: "as one number", statistic: base, kind: "series" as const },
	];
}

/** Fields that a filter holds to one value. */
function fixedBy(statistic: string): Set<string> {
	const found = new Set<string>();
	// a quoted value may hold anything, so filters are read as such
	for (const [, field, value] of statistic.matchAll(/\[([a-z_]+)=("(?:[^"\\]|\\.)*"|[^\],"]*)\]/g))
		if (field && value !== undefined && !/^[^"]*\.\./.test(value)) found.add(field);
	return found;
}
