// SPDX-License-Identifier: Apache-2.0
import type { ThemeColours } from "../generated/maps";
import { type Area, type Axis, type Box, type Span, toPosition, xPixel, yPixel } from "./spaces";
import type { Tick } from "./ticks";

/** The text of canvases. */
export const FONT =
	"11px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', 'Liberation Sans', Arial, sans-serif";
/** Room around a plot, for its axes and its legend. */
export const MARGINS = { left: 84, right: 92, top: 6, bottom: 26 };
/** Between a plot and the upper side of its border: the highest row of a map does not lie on the border. */
export const HEADROOM = 5;
/** The same where a canvas is no wider than a telephone. */
const FEW = { ...MARGINS, left: 58, right: 46 };
const NARROW = 480;

/** Room around the plot of a canvas so wide. */
export const marginsOf = (width: number): typeof MARGINS => (width < NARROW ? FEW : MARGINS);

/** Height of the strip of losses under a plot. */
export const STRIP = 10;

/** The position of a plot, its time range, and the colours. */
export interface Frame {
	box: Box;
	span: Span;
	colours: ThemeColours;
}

/** A plot with the room up to its border. */
export const bordered = (box: Box): Box => ({ ...box, top: box.top - HEADROOM, height: box.height + HEADROOM });

/** Draw inside the plot only. */
export function within(context: CanvasRenderingContext2D, box: Box, draw: () => void): void {
	context.save();
	context.beginPath();
	context.rect(box.left, box.top, box.width, box.height);
	context.clip();
	draw();
	context.restore();
}

/** Hatch spans of time: nothing is known of them, which is not the same as nothing. */
export function paintHatch(
	context: CanvasRenderingContext2D,
	{ box, span, colours }: Frame,
	spans: readonly Readonly<[number, number]>[],
): void {
	context.strokeStyle = colours.hatch;
	context.lineWidth = 1;
	for (const [from, to] of spans) {
		const left = Math.max(box.left, xPixel(box, span, from));
		const right = Math.min(box.left + box.width, xPixel(box, span, to));
		if (right - left < 1) continue;
		within(context, { ...box, left, width: right - left }, () => {
			context.beginPath();
			for (let x = left - box.height - (left % 8); x < right; x += 8) {
				context.moveTo(x, box.top + box.height);
				context.lineTo(x + box.height, box.top);
			}
			context.stroke();
		});
	}
}

/** Spans that follow each other and are apart, of the same time as these. */
export function joined(spans: readonly Readonly<[number, number]>[]): [number, number][] {
	const found: [number, number][] = [];
	for (const [from, to] of spans.toSorted((one, other) => one[0] - other[0])) {
		const last = found.at(-1);
		if (last && from <= last[1]) last[1] = Math.max(last[1], to);
		else if (to > from) found.push([from, to]);
	}
	return found;
}

/** The parts of these spans in the shown time range. */
export const inside = (spans: readonly Readonly<[number, number]>[], { from, to }: Span): [number, number][] =>
	spans.flatMap(([first, last]): [number, number][] =>
		last > from && first < to ? [[Math.max(first, from), Math.min(last, to)]] : [],
	);

/** Hatch spans in which nothing was recorded, and say so in those that have room for the words. */
export function paintBlank(
	context: CanvasRenderingContext2D,
	frame: Frame,
	spans: readonly Readonly<[number, number]>[],
	words: string,
): void {
	paintHatch(context, frame, inside(spans, frame.span));
	paintWords(context, frame, spans, words);
}

/** Apart from each other, in px. */
const DOTS = 8;

/** Dot spans of which there is no answer, and say why: what is white there isn't known to be zero. */
export function paintAwaited(
	context: CanvasRenderingContext2D,
	frame: Frame,
	spans: readonly Readonly<[number, number]>[],
	words: string,
): void {
	const { box, span, colours } = frame;
	const shown = inside(spans, span);
	if (shown.length === 0) return;
	context.fillStyle = dots(context, colours.faint, box.top) ?? colours.background;
	for (const [from, to] of shown) {
		const left = xPixel(box, span, from);
		context.fillRect(left, box.top, xPixel(box, span, to) - left, box.height);
	}
	paintWords(context, frame, spans, words);
}

let dotted: { key: string; pattern: CanvasPattern | null } = { key: "", pattern: null };

/** Dots in two staggered columns, from `top` down, as sharp as the screen shows them; null where there is no canvas for them. */
function dots(context: CanvasRenderingContext2D, colour: string, top: number): CanvasPattern | null {
	const ratio = context.getTransform().a;
	const key = `${colour} ${ratio}`;
	if (dotted.key !== key) {
		const tile = document.createElement("canvas");
		const scale = Math.max(1, Math.round(ratio));
		tile.width = 2 * DOTS * scale;
		tile.height = DOTS * scale;
		const pen = tile.getContext("2d");
		if (pen) {
			pen.fillStyle = colour;
			pen.fillRect(0, 0, scale, scale);
			pen.fillRect(DOTS * scale, (DOTS / 2) * scale, scale, scale);
		}
		dotted = { key, pattern: context.createPattern(tile, "repeat") };
	}
	const scale = 1 / Math.max(1, Math.round(ratio));
	dotted.pattern?.setTransform(new DOMMatrix([scale, 0, 0, scale, 0, top]));
	return dotted.pattern;
}

const widths = new Map<string, number>();

/** The width of words in the text of canvases, in px. */
function wordsWidth(context: CanvasRenderingContext2D, words: string): number {
	const known = widths.get(words) ?? context.measureText(words).width;
	widths.set(words, known);
	return known;
}

/** Of what is shown the time that is not answered and not blank. */
export function awaited(
	answered: Readonly<[number, number]>,
	span: Span,
	blank: readonly Readonly<[number, number]>[],
): [number, number][] {
	const known = joined(inside([...blank, answered], span));
	const ends = [span.from, ...known.flat(), span.to];
	return ends.flatMap((end, i): [number, number][] => {
		const next = ends[i + 1] ?? end;
		return i % 2 === 0 && next > end ? [[end, next]] : [];
	});
}

/** Idle spans are shaded from so many px on: between bursts, stripes would cover the plot. */
const SHADED = 8;

/** Of idle spans those that are wide enough to be shaded. */
export const seenIdle = (
	spans: readonly Readonly<[number, number]>[],
	{ box, span }: Pick<Frame, "box" | "span">,
): [number, number][] =>
	inside(joined(spans), span).filter(([from, to]) => xPixel(box, span, to) - xPixel(box, span, from) >= SHADED);

/** Shade spans without any I/O though some was expected, and say so. */
export function paintIdle(
	context: CanvasRenderingContext2D,
	frame: Frame,
	spans: readonly Readonly<[number, number]>[],
): void {
	const { box, span, colours } = frame;
	context.fillStyle = colours.text;
	context.globalAlpha = 0.06;
	for (const [from, to] of seenIdle(spans, { box, span })) {
		const left = xPixel(box, span, from);
		context.fillRect(left, box.top, xPixel(box, span, to) - left, box.height);
	}
	context.globalAlpha = 1;
	paintWords(context, frame, spans, "no I/O");
}

function paintWords(
	context: CanvasRenderingContext2D,
	{ box, span, colours }: Frame,
	spans: readonly Readonly<[number, number]>[],
	words: string,
): void {
	const shown = inside(spans, span);
	if (shown.length === 0) return;
	context.font = FONT;
	context.textAlign = "center";
	context.textBaseline = "middle";
	const wide = wordsWidth(context, words) + 16;
	for (const [from, to] of shown) {
		const [left, right] = [xPixel(box, span, from), xPixel(box, span, to)];
		if (right - left < wide + 16 || box.height < 40) continue;
		const [x, y] = [(left + right) / 2, box.top + box.height / 2];
		context.fillStyle = colours.background;
		context.fillRect(x - wide / 2, y - 10, wide, 20);
		context.fillStyle = colours.faint;
		context.fillText(words, x, y);
	}
}

/**
 * Losses under a plot, and what they are called: a bar's height is by the logarithm, an unknown number is lowest. The first cell,
 * `step` long, is at `origin`.
 */
export function paintStrip(
	context: CanvasRenderingContext2D,
	{ box, span, colours }: Frame,
	bars: ReadonlyMap<number, number>,
	{ origin, step, name }: { origin: number; step: number; name: string },
): void {
	const top = box.top + box.height;
	const most = Math.log2(1 + Math.max(0, ...bars.values()));
	within(context, { ...box, top, height: STRIP }, () => {
		context.fillStyle = colours.lost;
		for (const [cell, lost] of bars) {
			const left = xPixel(box, span, origin + cell * step);
			const right = xPixel(box, span, origin + (cell + 1) * step);
			const tall = (STRIP - 2) * (0.3 + (most > 0 ? 0.7 * (Math.log2(1 + lost) / most) : 0));
			context.fillRect(left, top + STRIP - tall, Math.max(2, right - left), tall);
		}
	});
	context.font = FONT;
	context.fillStyle = colours.lost;
	context.textAlign = "left";
	context.textBaseline = "middle";
	const left = box.left + box.width + 8;
	// a narrow canvas has no room for it; the caption has the same words
	if (left + context.measureText(name).width <= context.canvas.width / context.getTransform().a)
		context.fillText(name, left, top + STRIP / 2 + 1);
	context.strokeStyle = colours.faint;
	context.lineWidth = 1;
	context.strokeRect(box.left - 0.5, top - 0.5, box.width + 1, STRIP + 1);
}

/** The plot's border, and marks next to it. */
export function paintValues(
	context: CanvasRenderingContext2D,
	{ box, colours }: Frame,
	axis: Axis,
	ticks: readonly Tick[],
): void {
	context.font = FONT;
	context.fillStyle = colours.text;
	context.strokeStyle = colours.faint;
	context.lineWidth = 1;
	const border = bordered(box);
	context.strokeRect(border.left - 0.5, border.top - 0.5, border.width + 1, border.height + 1);
	context.textAlign = "right";
	context.textBaseline = "middle";
	context.beginPath();
	for (const tick of ticks) {
		const y = box.top + box.height * (1 - toPosition(axis, tick.value));
		context.moveTo(box.left - 5, y);
		context.lineTo(box.left, y);
		// a label that is too wide for a telephone is made narrower
		context.fillText(tick.label, box.left - 8, y, box.left - 8);
	}
	context.stroke();
}

/** How many marks of time have room. */
export const timeMarks = (box: Box): number => Math.max(3, Math.floor(box.width / 80));

/** Marks of time under the plot, from `foot` on; `day`: the day of the first of them. */
export function paintTimes(
	context: CanvasRenderingContext2D,
	{ box, span, colours }: Frame,
	ticks: readonly Tick[],
	foot: number,
	day = "",
): void {
	context.font = FONT;
	context.fillStyle = colours.text;
	context.strokeStyle = colours.faint;
	context.lineWidth = 1;
	context.textBaseline = "top";
	context.textAlign = "center";
	context.beginPath();
	for (const [number, { value, label }] of ticks.entries()) {
		const x = xPixel(box, span, value);
		context.moveTo(x, foot);
		context.lineTo(x, foot + 5);
		// a midnight has its day as label
		const isTime = number === 0 && label.includes(":");
		context.fillText(isTime ? `${day} ${label}`.trimStart() : label, x, foot + 8);
	}
	context.stroke();
}

/** A marked rectangle. */
export function paintArea(
	context: CanvasRenderingContext2D,
	{ box, span, colours }: Frame,
	axis: Axis,
	area: Area,
): void {
	const [left, right] = [xPixel(box, span, area.from), xPixel(box, span, area.to)];
	const [top, bottom] = [yPixel(box, axis, area.high), yPixel(box, axis, Math.max(area.low, axis.low))];
	context.strokeStyle = colours.text;
	context.lineWidth = 1.5;
	context.strokeRect(left, top, right - left, bottom - top);
	context.fillStyle = colours.text;
	context.globalAlpha = 0.08;
	context.fillRect(left, top, right - left, bottom - top);
	context.globalAlpha = 1;
}

/** Handles are so wide, in px. */
const HANDLE = 7;

/** Handles of a rectangle that can be resized. */
export function paintHandles(
	context: CanvasRenderingContext2D,
	handles: readonly (readonly [number, number])[],
	colours: ThemeColours,
): void {
	context.fillStyle = colours.background;
	context.strokeStyle = colours.text;
	context.lineWidth = 1.5;
	for (const [x, y] of handles) {
		context.beginPath();
		context.rect(x - HANDLE / 2, y - HANDLE / 2, HANDLE, HANDLE);
		context.fill();
		context.stroke();
	}
}
