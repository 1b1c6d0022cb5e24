// SPDX-License-Identifier: Apache-2.0
import { ask } from "../api/client";
import { intervalOf } from "../api/columns";
import { wordsOf } from "../api/feed";
import { question } from "../api/question";
import {
	cursor,
	edit,
	facts,
	focus,
	type GraphSpec,
	refused,
	SECOND,
	type Span,
	setSpan,
	sheet,
	spanOf,
	time,
	type Worksheet,
	whole,
} from "../api/worksheet";
import type { Extremes } from "../generated/api";
import { messageOf } from "../lib/errors";
import { around, lengthOf, middleOf, moved, nextMultiple, zoomed } from "./times";

/** Moments that are jumped to one after the other. */
const MOMENTS = 50;

/** A span in whole ns, as it is saved. */
const round = ({ from, until }: Span): Span => ({ from: Math.round(from), until: Math.round(until) });

/** The graph that keys act on. */
export const focused = (): GraphSpec | undefined => sheet.value.graphs.find((each) => each.id === focus.value);

/** The time to move: that of the worksheet, or that of the focused graph if it has its own. */
export function shown(): Span {
	const spec = focused();
	return spec && !spec.synced ? (spec.span ?? time.value) : time.value;
}

function go(span: Span): void {
	const spec = focused();
	if (spec && !spec.synced) setSpan(spec, round(span));
	else sheet.value = { ...sheet.value, time: round(span) };
}

/** The length up to now that the worksheet follows, in seconds; 0 if it does not follow. */
function following(): number {
	const spec = focused();
	return "live" in sheet.value.time && (!spec || spec.synced) ? sheet.value.time.live : 0;
}

/** Earlier (share < 0) or later, by a share of what is shown. */
export const move = (share: number): void => go(moved(shown(), whole.value, share));

/** Zoom in (factor < 1) or out, around the selected second; a worksheet that follows continues to follow. */
export function zoom(factor: number): void {
	const live = following();
	if (live) sheet.value = { ...sheet.value, time: { live: Math.max(1, Math.round(live * factor)) } };
	else go(zoomed(shown(), factor, centre()));
}

/** Show so many seconds, and the next multiple of them when they are shown already. */
export function showUnit(seconds: number): void {
	const live = following();
	const times = nextMultiple(live ? live * SECOND : lengthOf(shown()), seconds);
	if (live) sheet.value = { ...sheet.value, time: { live: times * seconds } };
	else go(around(centre(), times * seconds * SECOND));
}

/** The latest; what is still recorded is followed. */
export function toNow(): void {
	const length = lengthOf(shown());
	if (facts.value?.live) {
		sheet.value = { ...sheet.value, time: { live: Math.max(1, Math.round(length / SECOND)) } };
		return;
	}
	const { until } = whole.value;
	go({ from: until - length, until });
}

/** Hold what is shown, or follow again. */
export function pause(): void {
	if ("live" in sheet.value.time) sheet.value = { ...sheet.value, time: standing() };
	else toNow();
}

/** All that was recorded. */
export const showWhole = (): void => go(whole.value);

/** The part of time between two moments, of all graphs. */
export function showSpan(span: Span): void {
	sheet.value = { ...sheet.value, time: round(span) };
}

/** What is shown, as a part of time that stays. */
export const standing = (): Span => round(time.value);

function centre(): number {
	const span = shown();
	const at = cursor.value ? middleOf(cursor.value) : middleOf(span);
	return at >= span.from && at < span.until ? at : middleOf(span);
}

let visited = { question: "", moments: Promise.resolve<Span[]>([]), next: 0 };

/** Select the time of the minimum or maximum of a graph; repeated, the next one. */
export async function jump(spec: GraphSpec, kind: "max" | "min"): Promise<void> {
	if ("live" in sheet.value.time && spec.synced) sheet.value = { ...sheet.value, time: standing() };
	const shown = sheet.value.graphs.find((each) => each.id === spec.id) ?? spec;
	const { recording, statistic, source, from, to } = wordsOf(shown);
	// a second is selected, however fine the columns are
	const interval = `${intervalOf(spanOf(shown))}ns`;
	const words = { recording, statistic, source, from, to, interval, kind, count: MOMENTS };
	const name = question("extremes", words);
	if (visited.question !== name) {
		const moments = ask<Extremes>("extremes", words).then((found) =>
			found.moments.map((each) => ({ from: each.from_ns, until: each.until_ns })),
		);
		visited = { question: name, moments, next: 0 };
	}
	const mine = visited;
	const place = mine.next++;
	try {
		const moments = await mine.moments;
		// of several wishes the last one counts
		if (visited !== mine || mine.next > place + 1) return;
		const found = moments[place % Math.max(1, moments.length)];
		refused.value = found ? "" : "Nothing was recorded in this time.";
		if (!found) return;
		cursor.value = found;
		edit(spec.id, { panel: "second" });
	} catch (error) {
		if (visited === mine) visited = { ...mine, question: "" };
		refused.value = messageOf(error);
	}
}

/** The followed time that a comparison has stopped, and the fixed time since then. */
let held: { time: Worksheet["time"]; as: Worksheet["time"] } | null = null;

/** Compare with the time just before, or end that; what was followed before is followed again, unless it was moved. */
export function compare(): void {
	if (sheet.value.compare) {
		const time = held?.as === sheet.value.time ? held.time : sheet.value.time;
		sheet.value = { ...sheet.value, time, compare: null };
		return;
	}
	const shown = standing();
	// where nothing was recorded before it, its second half is compared with the first
	const isFirst = shown.from <= whole.value.from;
	const now = isFirst ? { ...shown, from: (shown.from + shown.until) / 2 } : shown;
	const frozen = isFirst || "live" in sheet.value.time ? round(now) : sheet.value.time;
	const { from, until } = round(now);
	held = { time: sheet.value.time, as: frozen };
	sheet.value = { ...sheet.value, time: frozen, compare: { from: from - (until - from), until: from } };
}

/** Move the time that is compared with. */
export function moveCompared(share: number): void {
	const { compare: other } = sheet.value;
	if (other) sheet.value = { ...sheet.value, compare: round(moved(other, whole.value, share)) };
}

/** A graph with a time of its own, or back with the others. */
export function sync(spec: GraphSpec): void {
	if (spec.synced) edit(spec.id, { synced: false, span: standing() });
	else edit(spec.id, { synced: true, span: null });
}

/** All graphs show the time of this one. */
export function syncAll(spec: GraphSpec): void {
	const span = spec.synced ? null : spec.span;
	const graphs = sheet.value.graphs.map((each) => ({ ...each, synced: true, span: null }));
	sheet.value = { ...sheet.value, graphs, ...(span ? { time: span } : {}) };
}
