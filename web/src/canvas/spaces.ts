// SPDX-License-Identifier: Apache-2.0
/**
 * The spaces of a map, by name.
 *
 * *value*: nanoseconds or bytes. *position*: 0 at the bottom of the map, 1 at its top. *time*: nanoseconds since the map's
 * start. *pixel*: CSS pixels of the canvas, y downwards. Each step has its way back.
 */
export type YScale = "log" | "linear";

/** The part of y that is shown. */
export interface Axis {
	low: number;
	high: number;
	scale: YScale;
}

/** The part of time that is shown. */
export interface Span {
	from: number;
	to: number;
}

/** The position of the map on its canvas. */
export interface Box {
	left: number;
	top: number;
	width: number;
	height: number;
}

/** A rectangle in time and value, as brushed. */
export interface Area extends Span {
	low: number;
	high: number;
}

export function toPosition(axis: Axis, value: number): number {
	if (axis.scale === "linear") return (value - axis.low) / (axis.high - axis.low);
	const low = Math.log(axis.low);
	return (Math.log(Math.max(value, Number.MIN_VALUE)) - low) / (Math.log(axis.high) - low);
}

export function toValue(axis: Axis, position: number): number {
	if (axis.scale === "linear") return axis.low + position * (axis.high - axis.low);
	const low = Math.log(axis.low);
	return Math.exp(low + position * (Math.log(axis.high) - low));
}

export const yPixel = (box: Box, axis: Axis, value: number): number =>
	box.top + box.height * (1 - toPosition(axis, value));

export const yValue = (box: Box, axis: Axis, pixel: number): number =>
	toValue(axis, 1 - (pixel - box.top) / box.height);

export const xPixel = (box: Box, span: Span, time: number): number =>
	box.left + (box.width * (time - span.from)) / (span.to - span.from);

export const xTime = (box: Box, span: Span, pixel: number): number =>
	span.from + ((pixel - box.left) / box.width) * (span.to - span.from);

/** Closer (factor < 1) or farther, keeping `about` in its place, never beyond the whole nor below `least`. */
export function zoomSpan(span: Span, whole: Span, about: number, factor: number, least: number): Span {
	const length = Math.min(whole.to - whole.from, Math.max(least, (span.to - span.from) * factor));
	const share = (about - span.from) / (span.to - span.from);
	return within({ from: about - share * length, to: about + (1 - share) * length }, whole);
}

/** Moved by a time, stopping at the ends of the whole. */
export function moveSpan(span: Span, whole: Span, by: number): Span {
	return within({ from: span.from + by, to: span.to + by }, whole);
}

/** Of the same length, inside the whole. */
function within(span: Span, whole: Span): Span {
	const length = Math.min(span.to - span.from, whole.to - whole.from);
	const from = Math.min(Math.max(span.from, whole.from), whole.to - length);
	return { from, to: from + length };
}

/** Closer or farther in y, keeping the value `about` in its place; what is shown stays inside the whole axis. */
export function zoomAxis(axis: Axis, whole: Axis, about: number, factor: number): Axis {
	const here = toPosition(axis, about);
	const ends = [here - here * factor, here + (1 - here) * factor].map((position) => toValue(axis, position));
	const low = Math.max(whole.low, ends[0] ?? axis.low);
	const high = Math.min(whole.high, ends[1] ?? axis.high);
	// below this, double precision does not distinguish the ends
	return high - low > 1e-9 * high ? { ...axis, low, high } : axis;
}

/** A rectangle between two corners in pixels, in time and value, cut at the map's edges. */
export function areaOf(box: Box, span: Span, axis: Axis, one: [number, number], two: [number, number]): Area {
	const clamp = (value: number, low: number, size: number) => Math.min(low + size, Math.max(low, value));
	const [left, right] = [one[0], two[0]].map((x) => clamp(x, box.left, box.width)).sort((a, b) => a - b);
	const [top, bottom] = [one[1], two[1]].map((y) => clamp(y, box.top, box.height)).sort((a, b) => a - b);
	return {
		from: xTime(box, span, left ?? box.left),
		to: xTime(box, span, right ?? box.left),
		low: yValue(box, axis, bottom ?? box.top),
		high: yValue(box, axis, top ?? box.top),
	};
}
