// SPDX-License-Identifier: Apache-2.0
import { breakdownOf, brokenDown, rootOf } from "../lib/names";
import { catalogue, type GraphSpec, type Painter } from "./worksheet";

type Painted = Pick<GraphSpec, "statistic" | "painter">;

/** Whether a statistic is a heat map, as the catalogue has it. */
export function isMapped(statistic: string): boolean {
	const field = breakdownOf(statistic);
	const entry = catalogue.value.find((each) => each.name === rootOf(statistic));
	return entry?.breakdowns.some((each) => each.field === field && each.kind === "heat") ?? false;
}

/** The request for a graph: for a map as one line, the number that the map distinguishes. */
export const askedOf = ({ statistic, painter }: Painted): string =>
	painter === "line" && isMapped(statistic) ? brokenDown(statistic, "") : statistic;

/** Whether a map has percentiles: those are of I/Os, so maps of bytes have none, nor have offsets, which are addresses. */
const isRanked = (statistic: string): boolean => {
	const entry = catalogue.value.find((each) => each.name === rootOf(statistic));
	return isMapped(statistic) && breakdownOf(statistic) !== "offset" && entry?.unit !== "B/s";
};

/** Whether a graph shows the percentiles of its map. */
export const hasPercentiles = ({ statistic, painter }: Painted): boolean =>
	painter === "percentiles" && isRanked(statistic);

/** The form in which the map of a graph is requested. */
export const drawnOf = (spec: Painted): "true" | "percentiles" => (hasPercentiles(spec) ? "percentiles" : "true");

/** The ways to paint a statistic, the default first; `adds_up`: whether its values, if several, are parts of a whole. */
export function paintersOf(statistic: string, kind: string, adds_up: boolean): Painter[] {
	if (isMapped(statistic)) return isRanked(statistic) ? ["heat", "percentiles", "line"] : ["heat", "line"];
	if (kind !== "stack") return [];
	return adds_up ? ["stack", "line"] : ["line", "stack"];
}

/** How a graph is painted: as chosen if possible, else by default; "" if there is no choice. */
export function painterOf(spec: Painted, kind: string, adds_up: boolean): Painter {
	const found = paintersOf(spec.statistic, kind, adds_up);
	return found.includes(spec.painter) ? spec.painter : (found[0] ?? "");
}
