// SPDX-License-Identifier: Apache-2.0
import { rootOf } from "../lib/names";
import { FEW, intervalOf, MANY, type Room, SOME } from "./columns";
import { heldInterval, inlined } from "./offline";
import { askedOf, hasPercentiles, isMapped } from "./painters";
import { catalogue, facts, type GraphSpec, SECOND, type Span, tick, whole } from "./worksheet";

/** The length of a graph's columns over a span, in ns. A page without a service keeps those that it holds. */
export const columnLength = (spec: GraphSpec, span: Span): number =>
	(inlined() && heldInterval(askedOf(spec))) || intervalOf(span, roomOf(spec, span));

/** What a graph has room for; null where only whole seconds are known: of counters, and before the first event that is still there. */
function roomOf(spec: GraphSpec, span: Span): Room | null {
	const entry = catalogue.value.find((each) => each.name === rootOf(spec.statistic));
	const perSecond = eventRate(spec.source || (entry?.source ?? ""), span);
	return perSecond === null ? null : { pixels: pixelsOf(spec), perSecond, enough: enoughOf(spec) };
}

/** I/Os of a column, on average. */
function enoughOf(spec: GraphSpec): number {
	if (hasPercentiles(spec)) return MANY;
	return isMapped(askedOf(spec)) ? FEW : SOME;
}

/** Events a second of a source; null where only whole seconds are known: of counters, and before the first event that is kept. */
export function eventRate(source: string, span: Span): number | null {
	const here = facts.value;
	const events = (tick.peek() ?? here)?.events[source] ?? 0;
	if (!here || events === 0 || here.events_from_ns === null || span.from < here.events_from_ns - SECOND) return null;
	const { from, until } = whole.peek();
	return (events * SECOND) / (until - from);
}

/** About how wide a plot is; without its list of values and its axes. */
function pixelsOf({ width }: GraphSpec): number {
	const page = typeof innerWidth === "number" ? innerWidth : 1440;
	if (page < 800) return Math.max(200, page - 200);
	return Math.max(200, (width === 2 ? page : page / 2) - 450);
}
