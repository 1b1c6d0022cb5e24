// SPDX-License-Identifier: Apache-2.0
import { cursor, edit, type GraphSpec, SECOND, setSpan, sheet, spanOf, whole } from "../../api/worksheet";
import { snapped as grown, spotAt, wholeAxis } from "../../canvas/cells";
import { EPOCH } from "../../canvas/clock";
import type { Content, Words } from "../../canvas/content";
import { STRIP } from "../../canvas/frame";
import { Heat } from "../../canvas/heat";
import { anyLost, lostIn, lostWords } from "../../canvas/lost";
import { Numbers } from "../../canvas/numbers";
import { placeOf } from "../../canvas/rows";
import { areaOf, xTime, yValue, zoomAxis } from "../../canvas/spaces";
import { breakdownOf } from "../../lib/names";
import { lineOf, marksAt } from "../marks";
import { idleInRuns, unrecordedWords } from "../recorded";
import { offline } from "../session";
import { lengthWords, momentWords, moved, zoomed } from "../times";
import type { Drawn } from "./drawing";
import { type Mark, stateOf } from "./state";

/** A place on the canvas, in its pixels. */
export type Point = [x: number, y: number];

/** A step of the crosshair: a column, or a row. */
export const stepX = ({ box, span, content }: Drawn) =>
	Math.max(4, (box.width * (content?.interval ?? 1)) / Math.max(1, span.to - span.from));
export const stepY = ({ box }: Drawn) => Math.max(4, box.height / 40);

/** A column of time: when it begins, without the day that the axis has, and its length. */
function columnWords(from: number, length: number): string {
	const begin = momentWords(from, length, whole.peek().from);
	return `${from < EPOCH ? begin : begin.slice(11)} + ${lengthWords(length)}`;
}

/** What is at a point, in words; null for nothing. */
export function said(drawn: Drawn, point: Point): Words | null {
	const { box, span, content } = drawn;
	const [x, y] = point;
	if (x < box.left || x > box.left + box.width || y < box.top) return null;
	const time = xTime(box, span, x);
	const within = (spans: Content["hatched"]) => spans.some(([start, end]) => time >= start && time < end);
	const origin = content?.origin ?? spanOf(drawn.spec).from;
	const blank = content !== null && within(content.hatched);
	const why = blankWords(drawn, time, blank);
	if (why && y <= box.top + box.height)
		return { time: momentWords(time + origin, (span.to - span.from) / box.width, whole.peek().from), nothing: why };
	if (!content) return null;
	const column = Math.floor(time / content.interval);
	const columns = content.cells ?? { first: 0, joined: 1 };
	const first = columns.first + Math.floor((column - columns.first) / columns.joined) * columns.joined;
	const from = content.origin + first * content.interval;
	const words = { time: columnWords(from, columns.joined * content.interval) };
	const under = y - box.top - box.height;
	const lost = lostWords(lostIn(content.lost, first, first + columns.joined));
	if (under > 0) return under > STRIP || !anyLost(content.lost) ? null : { ...words, missing: lost || "nothing" };
	// the keys don't come to the strip
	const missing: Record<string, string> = lost ? { missing: lost } : {};
	const idle = within(idleInRuns(content.idle, content.origin));
	const named = marksAt(time + content.origin, (3 * (span.to - span.from)) / box.width).map(lineOf);
	if (named.length > 0) missing.mark = named.slice(0, 3).join("\n");
	const found = idle ? null : content.at(time, yValue(box, content.axis, y));
	if (found) return { ...words, ...found, ...missing };
	if (blank) return { ...words, nothing: "was recorded here in one of the two times", ...missing };
	if (idle) return { ...words, nothing: "happened here, though some I/O was expected", ...missing };
	return lost || named.length > 0 ? { ...words, ...missing } : null;
}

/** Why nothing is known of a time, in words that follow "nothing"; "" where something is. `blank`: whether its content lacks it. */
function blankWords({ content, spec }: Drawn, time: number, blank: boolean): string {
	const why = unrecordedWords(time + (content?.origin ?? spanOf(spec).from));
	if (!content) return why;
	// what is known of a part of a column is taken for all of it
	const column = Math.floor(time / content.interval);
	const known = column >= 0 && column < content.columns && !blank;
	return known ? "" : why || (blank && !content.compared ? "was recorded here" : "");
}

/** Mark the rectangle between two corners, grown to whole cells. */
export function mark(drawn: Drawn, [one, two]: [Point, Point]): void {
	const { box, span, content } = drawn;
	if (!content) return;
	const area = areaOf(box, span, content.axis, one, two);
	const { origin } = content;
	let found: Mark = { from: area.from, until: area.to, low: area.low, high: area.high };
	if (content.cells) {
		const { from, to, low, high } = grown(area, content.cells, content.interval);
		found = { from, until: to, low, high };
	} else {
		const whole = (time: number, way: (value: number) => number) => way(time / content.interval) * content.interval;
		found = {
			from: whole(area.from, Math.floor),
			until: whole(area.to, Math.ceil),
			low: content.axis.low,
			high: content.axis.high,
		};
	}
	const mapped = content.cells !== null;
	stateOf(drawn.marks).mark.value = { ...found, mapped, from: found.from + origin, until: found.until + origin };
}

/** Corners over all of time that is shown. */
export const wide = ({ box }: Drawn, one: Point, two: Point): [Point, Point] => [
	[box.left, one[1]],
	[box.left + box.width, two[1]],
];

/** Corners over all values that are shown. */
export const high = ({ box }: Drawn, one: Point, two: Point): [Point, Point] => [
	[one[0], box.top],
	[clamp(two[0], box.left, box.width), box.top + box.height],
];

/** Show the marked part alone: its values, and its time where that is wished. */
export function zoomTo(spec: GraphSpec, { low, high, from, until, mapped }: Mark, inTime: boolean): void {
	const state = stateOf(spec.id);
	if (mapped) edit(spec.id, { rows: { low, high } });
	if (inTime) setSpan(spec, round({ from, until }));
	state.mark.value = null;
}

/** Select the second at a point, or clear the selection if it is selected already; a mark is removed first. */
export function click(drawn: Drawn, point: Point): void {
	const { box, span, content, spec } = drawn;
	const { mark } = stateOf(drawn.marks);
	if (mark.value) {
		mark.value = null;
		return;
	}
	if (!content) return;
	listCell(drawn, point);
	const length = Math.max(content.interval, Math.min(SECOND, (span.to - span.from) / 20));
	const from = Math.floor((xTime(box, span, point[0]) + content.origin) / length) * length;
	const before = cursor.value;
	const same = before && before.from === from && before.until === from + length;
	cursor.value = same ? null : { from, until: from + length };
	for (const each of sheet.value.graphs)
		if (each.id === spec.id || (each.synced && spec.synced)) edit(each.id, { panel: same ? "average" : "second" });
}

/** List the I/Os of the cell of a map at a point; clear the list if the cell is empty or listed already. */
function listCell({ box, span, content, spec, marks }: Drawn, [x, y]: Point): void {
	if (offline.peek() || marks !== spec.id || !(content instanceof Heat) || content.look.group.y === "utilization")
		return;
	const { cells, origin, interval } = content;
	const spot = cells && spotAt(cells, xTime(box, span, x) / interval, yValue(box, content.axis, y));
	const { listed } = stateOf(spec.id);
	const before = listed.peek();
	if (!cells || !spot || (cells.counts[spot.place] ?? 0) === 0) {
		listed.value = null;
		return;
	}
	const [from, until] = [origin + spot.first * interval, origin + spot.past * interval];
	const same = before?.from === from && before.until === until && before.low === spot.low && before.high === spot.high;
	listed.value = same ? null : { from, until, low: spot.low, high: spot.high, mapped: true };
}

/** Open the menu of what is at a point: a layer, or a row of a map. `left`, `top`: where, in the window. */
export function openMenu(drawn: Drawn, [x, y]: Point, left: number, top: number): void {
	const { box, span, content, spec } = drawn;
	const state = stateOf(spec.id);
	const field = breakdownOf(spec.statistic);
	if (!content || !field) return;
	const value = yValue(box, content.axis, y);
	if (content instanceof Numbers) {
		if (content.look.answer.kind === "percentiles") return;
		const column = Math.floor(xTime(box, span, x) / content.interval);
		const key = content.nearest(column, value);
		if (!state.items.value.some((item) => item.key === key && item.single)) return;
		state.menu.value = { x: left, y: top, about: { field, value: key } };
		return;
	}
	const { cells } = content;
	// paired numbers have no rows
	if (!cells) return;
	const marked = stateOf(drawn.marks).mark.value;
	const row = placeOf(cells.edges, value);
	const [low, high] = marked ? [marked.low, marked.high] : [cells.edges[row] ?? value, cells.edges[row + 1] ?? value];
	state.menu.value = { x: left, y: top, about: { field, low, high } };
}

/** Earlier (share < 0) or later by a share of what is shown. */
export function pan({ spec }: Drawn, share: number): void {
	setSpan(spec, round(moved(spanOf(spec), whole.peek(), share)));
}

/** Longer (factor > 1) or shorter, keeping what is at `x`; what follows continues to follow. */
export function zoomTime(drawn: Drawn, x: number, factor: number): void {
	const { spec, box } = drawn;
	const { time } = sheet.value;
	if (spec.synced && "live" in time) {
		const next = time.live * factor;
		const live = Math.max(2, factor > 1 ? Math.ceil(next) : Math.floor(next));
		sheet.value = { ...sheet.value, time: { live } };
		return;
	}
	const span = spanOf(spec);
	const about = span.from + ((x - box.left) / box.width) * (span.until - span.from);
	setSpan(spec, round(zoomed(span, factor, about)));
}

/** More (factor > 1) or fewer values of a map, keeping what is at `y`. */
export function zoomValues(drawn: Drawn, y: number, factor: number): void {
	const { content, box, spec } = drawn;
	if (!(content instanceof Heat)) return;
	const whole = wholeAxis(content.look.group, content.axis.scale, 0);
	const { low, high } = zoomAxis(content.axis, whole, yValue(box, content.axis, y), factor);
	edit(spec.id, { rows: low <= whole.low && high >= whole.high ? null : { low, high } });
}

/** A span in whole ns. */
export const round = ({ from, until }: { from: number; until: number }) => ({
	from: Math.round(from),
	until: Math.round(until),
});
export const clamp = (value: number, low: number, size: number) => Math.min(low + size, Math.max(low, value));
export const distance = (one: Point, two: Point) => Math.hypot(one[0] - two[0], one[1] - two[1]);
