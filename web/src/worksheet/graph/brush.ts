// SPDX-License-Identifier: Apache-2.0
import type { Content } from "../../canvas/content";
import type { Box } from "../../canvas/spaces";
import type { Point } from "./actions";
import { pointOf } from "./data-position";
import type { Drawn } from "./drawing";
import { type Mark, stateOf } from "./state";

/** Where a drag takes hold of a mark: its left or right side (-1, 1), its lower or upper side; neither: the mark is moved. */
export interface Grip {
	x: -1 | 0 | 1;
	y: -1 | 0 | 1;
}

/** So near to an edge a pointer takes hold of it, in px. */
const NEAR = 6;

/** The rectangle of a mark on the canvas; the values of numbers over time have no limits. */
export function boxOf(drawn: Drawn, mark: Mark): Box {
	const [left, top] = pointOf(drawn, { time: mark.from, value: mark.high });
	const [right, bottom] = pointOf(drawn, { time: mark.until, value: mark.low });
	const { box } = drawn;
	const upper = mark.mapped ? Math.max(box.top, top) : box.top;
	const lower = mark.mapped ? Math.min(box.top + box.height, bottom) : box.top + box.height;
	return { left, top: upper, width: right - left, height: lower - upper };
}

/**
 * What a pointer takes hold of, null for nothing: an edge or a corner before the inside. `ctrl`: in a map, a drag with Ctrl marks another part;
 * in numbers it changes the mark, and a drag without Ctrl zooms.
 */
export function gripAt(drawn: Drawn, [x, y]: Point, ctrl: boolean): Grip | null {
	const mark = stateOf(drawn.marks).mark.peek();
	if (!mark || !drawn.content || (ctrl ? mark.mapped : !mark.mapped)) return null;
	const { left, top, width, height } = boxOf(drawn, mark);
	if (x < left - NEAR || x > left + width + NEAR || y < top - NEAR || y > top + height + NEAR) return null;
	const side = (at: number, size: number): -1 | 0 | 1 => {
		// the inside of a small mark stays
		const near = Math.min(NEAR, size / 4);
		if (at < near) return -1;
		return at > size - near ? 1 : 0;
	};
	return { x: side(x - left, width), y: mark.mapped ? ((0 - side(y - top, height)) as Grip["y"]) : 0 };
}

/** The shape of the pointer over a grip. */
export function cursorOf({ x, y }: Grip): string {
	if (x === 0 && y === 0) return "move";
	if (x === 0) return "ns-resize";
	if (y === 0) return "ew-resize";
	return x === y ? "nesw-resize" : "nwse-resize";
}

/** Where the handles of a mark are drawn: on its sides and corners, or on the sides in time only. */
export function handlesOf(drawn: Drawn, mark: Mark): Point[] {
	const { left, top, width, height } = boxOf(drawn, mark);
	const sides = [-1, 0, 1] as const;
	return sides
		.flatMap((x) => sides.map((y) => [x, y] as const))
		.filter(([x, y]) => (mark.mapped ? x !== 0 || y !== 0 : x !== 0 && y === 0))
		.map(([x, y]) => [left + ((x + 1) / 2) * width, top + ((y + 1) / 2) * height]);
}

/** A mark after a grip was dragMark by so many px; its edges stay on edges of cells, and a side never passes the other. */
export function dragMark(drawn: Drawn, mark: Mark, grip: Grip, [dx, dy]: Point): Mark {
	const { content, box, span } = drawn;
	if (!content) return mark;
	const columns = Math.round((dx * (span.to - span.from)) / box.width / columnOf(content));
	if (!mark.mapped) return stepMark(content, mark, grip, columns, 0);
	const edges = content.cells?.edges ?? [];
	const heights = edges.map((value) => pointOf(drawn, { time: mark.from, value })[1]);
	const nearest = (y: number) => heights.reduce((best, at, i) => (far(at, y) < far(heights[best], y) ? i : best), 0);
	const side = pointOf(drawn, { time: mark.from, value: grip.y > 0 ? mark.high : mark.low })[1];
	return stepMark(content, mark, grip, columns, nearest(side + dy) - nearest(side));
}

const far = (one: number | undefined, other: number): number => Math.abs((one ?? Number.POSITIVE_INFINITY) - other);

/** The time of a column as it is drawn. */
const columnOf = (content: Content): number => content.interval * (content.cells?.joined ?? 1);

/** A mark after a grip was moved by so many columns and rows, upwards. */
export function stepMark(content: Content, mark: Mark, grip: Grip, columns: number, rows: number): Mark {
	const column = columnOf(content);
	const moves = grip.x === 0 && grip.y === 0;
	const found = { ...mark };
	if (moves || grip.x < 0) found.from += columns * column;
	if (moves || grip.x > 0) found.until += columns * column;
	if (grip.x < 0) found.from = Math.min(found.from, mark.until - column);
	if (grip.x > 0) found.until = Math.max(found.until, mark.from + column);
	const edges = content.cells?.edges ?? [];
	if (!mark.mapped || rows === 0 || edges.length < 2) return found;
	const last = edges.length - 1;
	const place = (value: number) =>
		edges.reduce((best, at, i) => (far(at, value) < far(edges[best], value) ? i : best), 0);
	let [low, high] = [place(mark.low), place(mark.high)];
	const inside = Math.max(-low, Math.min(last - high, rows));
	if (moves) [low, high] = [low + inside, high + inside];
	else if (grip.y < 0) low = Math.max(0, Math.min(high - 1, low + rows));
	else if (grip.y > 0) high = Math.min(last, Math.max(low + 1, high + rows));
	return { ...found, low: edges[low] ?? mark.low, high: edges[high] ?? mark.high };
}

/** Move the mark by columns and rows, upwards; `resizes`: move its right or its upper side alone. */
export function moveMark({ content, marks }: Drawn, columns: number, rows: number, resizes: boolean): void {
	const { mark } = stateOf(marks);
	if (!mark.value || !content) return;
	const grip: Grip = resizes ? { x: columns === 0 ? 0 : 1, y: rows === 0 ? 0 : 1 } : { x: 0, y: 0 };
	mark.value = stepMark(content, mark.value, grip, columns, rows);
}
