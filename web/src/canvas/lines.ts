// SPDX-License-Identifier: Apache-2.0
import type { PercentilesAnswer, SeriesAnswer, StackAnswer } from "../generated/api";
import type { Frame } from "./frame";
import { REST } from "./hues";
import { type Span, xPixel } from "./spaces";

/** Numbers over time: one, one for each value of a field, or the percentiles of a map. */
export type Numbered = SeriesAnswer | StackAnswer | PercentilesAnswer;

/** The values over time of an answer's first line, which say how many columns it has. */
export function valuesOf(answer: Numbered): readonly (number | null)[] {
	if (answer.kind === "series") return answer.values;
	if (answer.kind === "percentiles") return answer.keys[0]?.values ?? [];
	const rows = [...answer.keys, ...(answer.others ? [answer.others] : [])].map(({ values }) => values);
	// of several hosts one may lack a column that another one has
	return rows[0]?.map((value, column) => value ?? known(rows, column)) ?? nothingOf(answer);
}

const known = (rows: readonly (readonly (number | null)[])[], column: number): number | null =>
	rows.find((values) => (values[column] ?? null) !== null)?.[column] ?? null;

/** The values of a stack without any I/O: 0, unless nothing was recorded. */
function nothingOf({ t0_ns, until_ns, interval_ns, covered_ns }: StackAnswer): (number | null)[] {
	// times since 1970 are some hundred ns off
	const columns = Math.ceil((until_ns - t0_ns) / interval_ns - Math.min(0.5, 1000 / interval_ns));
	return Array(Math.max(0, columns)).fill(covered_ns > 0 ? 0 : null);
}

/** Times since 1970 are some hundred ns off. */
const EXACT = 1000;

/** The recorded part of an answer, in ns since its begin. Percentiles know whole columns only. */
export function recordedPart(answer: Numbered): Span {
	const length = valuesOf(answer).length * answer.interval_ns;
	if (answer.kind === "percentiles") return { from: 0, to: length };
	const from = answer.first_ns - answer.t0_ns;
	const to = answer.until_ns - answer.t0_ns;
	return { from: from > EXACT ? from : 0, to: to < length - EXACT ? to : length };
}

/**
 * The columns, (first, one past the last), that were recorded completely. The rate of a column that is cut is that
 * of a few I/Os over a short time: no axis may depend on it. All columns where none is whole.
 */
export function wholeColumns({ from, to }: Span, interval: number, columns: number): [number, number] {
	const exact = Math.min(EXACT, interval / 10);
	const first = Math.max(0, Math.ceil((from - exact) / interval));
	const past = Math.min(columns, Math.floor((to + exact) / interval));
	return past > first ? [first, past] : [0, columns];
}

/** A number over time with its colour; null where nothing was recorded. */
export interface Layer {
	name: string;
	colour: string;
	values: readonly (number | null)[];
}

/** The name of all keys together that an answer does not name. */
export const OTHERS = "all others";

/** The layers of an answer, from the bottom up, each in its colour; a number alone has that of "". */
export function layersOf(answer: Numbered, colour: (key: string) => string): Layer[] {
	if (answer.kind === "series") return [{ name: answer.statistic, colour: colour(""), values: answer.values }];
	const shown = answer.keys.map(({ key, values }) => ({ name: key, colour: colour(key), values }));
	return answer.kind === "stack" && answer.others && answer.others.mean !== null
		? [...shown, { name: OTHERS, colour: REST, values: answer.others.values }]
		: shown;
}

/** The upper edges of stacked layers: of each layer and column, null where nothing was recorded. */
export function stacked(layers: readonly Layer[]): (number | null)[][] {
	let below: (number | null)[] = [];
	return layers.map((layer) => {
		below = layer.values.map((value, c) => (value === null ? null : (below[c] ?? 0) + value));
		return below;
	});
}

/** Runs of columns in which something was recorded. */
export function runs(values: readonly (number | null)[]): [number, number][] {
	const found: [number, number][] = [];
	for (const [column, value] of values.entries()) {
		if (value === null) continue;
		const last = found.at(-1);
		if (last && last[1] === column) last[1] = column + 1;
		else found.push([column, column + 1]);
	}
	return found;
}

/** The largest of the values in columns from `first` up to `past`, 0 where there are none. */
export function mostOf(values: readonly (readonly (number | null)[])[], first: number, past: number): number {
	let most = 0;
	for (const row of values)
		for (let c = Math.max(0, first); c < Math.min(past, row.length); c++) most = Math.max(most, row[c] ?? 0);
	return most;
}

/** The least of the values above zero in columns from `first` up to `past`, 0 where there are none. */
export function leastOf(values: readonly (readonly (number | null)[])[], first: number, past: number): number {
	let least = Number.POSITIVE_INFINITY;
	for (const row of values)
		for (let c = Math.max(0, first); c < Math.min(past, row.length); c++) {
			const value = row[c] ?? 0;
			if (value > 0) least = Math.min(least, value);
		}
	return Number.isFinite(least) ? least : 0;
}

/** The begin of a logarithmic axis that holds a value: a round number below it. */
export function flooring(least: number): number {
	if (!(least > 0)) return 1;
	const power = 10 ** Math.floor(Math.log10(least / 1.04));
	return ([5, 2, 1].find((each) => each * power <= least / 1.04) ?? 1) * power;
}

const LADDER = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];

/** The end of an axis that holds a value: a round number above it, so that it moves seldom while values do. */
export function ceiling(most: number): number {
	if (!(most > 0)) return 1;
	const power = 10 ** Math.floor(Math.log10(most));
	const step = LADDER.find((each) => each * power >= 1.04 * most) ?? 12;
	return step * power;
}

/** What a line or an area is drawn by: the times of columns, and the position of a value in the plot. */
export interface Plot {
	frame: Frame;
	interval: number;
	/** Columns are drawn inside of this part only. */
	part?: Span;
	y: (value: number) => number;
}

/** Draw a layer's upper edge over the runs in which it is known, and the area below it in its tint. `line`: the edge's colour. */
export function paintLayer(
	context: CanvasRenderingContext2D,
	plot: Plot,
	values: readonly (number | null)[],
	{ colour, width, tint, line = colour }: { colour: string; width: number; tint: number; line?: string },
): void {
	const { box, span } = plot.frame;
	const [first, past] = columnsIn(span, plot.interval, values.length);
	context.fillStyle = colour;
	context.strokeStyle = line;
	context.lineWidth = width;
	context.lineJoin = "round";
	for (const [start, end] of runs(values.slice(first, past))) {
		const edge = stairs(values, first + start, first + end, plot);
		if (tint > 0) {
			const area = new Path2D(edge);
			area.lineTo(edgePixel(plot, first + end), box.top + box.height);
			area.lineTo(edgePixel(plot, first + start), box.top + box.height);
			context.globalAlpha = tint;
			context.fill(area);
			context.globalAlpha = 1;
		}
		if (width > 0) context.stroke(edge);
	}
}

/** Where a column begins. */
function edgePixel({ frame: { box, span }, interval, part }: Plot, column: number): number {
	const time = column * interval;
	return xPixel(box, span, part ? Math.min(part.to, Math.max(part.from, time)) : time);
}

/** Columns that lie in a span, at least in part: the first, and one past the last. */
export function columnsIn(span: Span, interval: number, columns: number): [number, number] {
	const first = Math.max(0, Math.floor(span.from / interval));
	return [first, Math.max(first, Math.min(columns, Math.ceil(span.to / interval)))];
}

/** Columns narrower than a pixel are joined to so many pixels at least: on the screen one of them is whole. */
const JOINED = 2;

/**
 * The upper edge of columns as a path. Where several columns share a pixel the path goes through the least of them and along the
 * most, so that a peak keeps its height and its colour. Which columns are joined does not depend on what is shown.
 */
function stairs(values: readonly (number | null)[], from: number, to: number, plot: Plot): Path2D {
	const { y, interval } = plot;
	const { box, span } = plot.frame;
	const path = new Path2D();
	const x = (column: number) => edgePixel(plot, column);
	path.moveTo(x(from), y(values[from] ?? 0));
	const wide = (box.width * interval) / (span.to - span.from);
	const joined = wide >= 1 ? 1 : 2 ** Math.ceil(Math.log2(JOINED / wide));
	for (let column = from; column < to; ) {
		const end = Math.min(to, (Math.floor(column / joined) + 1) * joined);
		let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
		for (let c = column; c < end; c++) {
			const value = values[c] ?? 0;
			least = Math.min(least, value);
			most = Math.max(most, value);
		}
		if (joined > 1) path.lineTo(x(column), y(least));
		path.lineTo(x(column), y(most));
		path.lineTo(x(end), y(most));
		column = end;
	}
	return path;
}
