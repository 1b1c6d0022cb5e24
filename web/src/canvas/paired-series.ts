// SPDX-License-Identifier: Apache-2.0
import type { Changes } from "../generated/api";
import type { ThemeColours } from "../generated/maps";
import { steps } from "./bitmap";
import { Compared } from "./compared";
import type { Content, Words } from "./content";
import type { Frame } from "./frame";
import { ceiling, columnsIn, type Layer, mostOf, type Plot, paintLayer, runs } from "./lines";
import { type Axis, type Box, type Span, xPixel, yPixel } from "./spaces";
import type { Tick } from "./ticks";

/** A number over two parts of time of one length, in one colour. */
export interface Pair extends Layer {
	/** Over the other time, column by column from its begin. */
	before: readonly (number | null)[];
}

/** How two times of numbers are painted. */
export interface PairedSeriesLook {
	answer: Changes;
	highlights: readonly string[];
	mode: "highlight" | "isolate" | "exclude" | "rainbow";
	colour: (key: string) => string;
	words: (value: number | null) => string;
	ticks: (high: number, height: number) => Tick[];
	/** What all together is called. */
	all: string;
}

/** What is compared: the values that are chosen, each value where all are in colour, otherwise all together. */
export function pairsOf({ answer, highlights, mode, colour, all }: Omit<PairedSeriesLook, "words" | "ticks">): Pair[] {
	const named = answer.keys.map((each) => ({
		name: each.key,
		colour: colour(each.key),
		values: each.values,
		before: each.other_values,
	}));
	const chosen = mode === "rainbow" ? named : named.filter((each) => highlights.includes(each.name));
	if (chosen.length > 0) return chosen;
	const { values, other_values } = answer.whole;
	return [{ name: all, colour: colour(""), values, before: other_values }];
}

/** Two parts of time in one plot: a line for this one, a dashed one for the other; for a single pair, the area in between is coloured. */
export class PairedSeries extends Compared implements Content {
	readonly cells = null;
	readonly pairs: Pair[];
	#high = 1;

	constructor(readonly look: PairedSeriesLook) {
		const { values, other_values } = look.answer.whole;
		const lacks = values.map((value, c) => (value === null || (other_values[c] ?? null) === null ? 1 : null));
		super(look.answer, runs(lacks));
		this.pairs = pairsOf(look);
	}

	get axis(): Axis {
		return { low: 0, high: this.#high, scale: "linear" };
	}

	settle(shown: Span): boolean {
		const [first, past] = columnsIn(shown, this.interval, this.columns);
		const all = this.pairs.flatMap((pair) => [pair.values, pair.before]);
		const high = ceiling(mostOf(all, first, past));
		if (high === this.#high) return false;
		this.#high = high;
		return true;
	}

	ticks(height: number): Tick[] {
		return this.look.ticks(this.#high, height);
	}

	paint(context: CanvasRenderingContext2D, frame: Frame): void {
		const plot = { frame, interval: this.interval, y: (value: number) => yPixel(frame.box, this.axis, value) };
		const [single] = this.pairs;
		if (single && this.pairs.length === 1) paintBetween(context, plot, single);
		for (const pair of this.pairs) {
			context.setLineDash([4, 3]);
			paintLayer(context, plot, pair.before, { colour: pair.colour, width: 1.2, tint: 0 });
			context.setLineDash([]);
			paintLayer(context, plot, pair.values, { colour: pair.colour, width: 1.8, tint: 0 });
		}
	}

	legend(context: CanvasRenderingContext2D, box: Box, colours: ThemeColours): void {
		const left = box.left + box.width + 8;
		context.textAlign = "left";
		context.textBaseline = "middle";
		const room = context.canvas.width / context.getTransform().a - left - 16;
		const names = context.measureText("this time").width <= room ? ["this time", "that time"] : ["now", "then"];
		for (const [i, words] of names.entries()) {
			const y = box.top + 10 + 16 * i;
			context.strokeStyle = colours.text;
			context.lineWidth = 1.6;
			context.setLineDash(i === 0 ? [] : [4, 3]);
			context.beginPath();
			context.moveTo(left, y);
			context.lineTo(left + 12, y);
			context.stroke();
			context.setLineDash([]);
			context.fillStyle = colours.text;
			context.fillText(words, left + 16, y);
		}
	}

	at(time: number, _value: number): Words | null {
		const column = Math.floor(time / this.interval);
		if (column < 0 || column >= this.columns) return null;
		const { words } = this.look;
		const [single] = this.pairs;
		if (single && this.pairs.length === 1)
			return { "this time": words(single.values[column] ?? null), "that time": words(single.before[column] ?? null) };
		const said = this.pairs
			.slice(0, MOST_WORDS)
			.map((pair) => [
				pair.name,
				`${words(pair.values[column] ?? null)}, that time ${words(pair.before[column] ?? null)}`,
			]);
		const left = this.pairs.length - said.length;
		return { ...Object.fromEntries(said), ...(left > 0 && { "…": `${left} more` }) };
	}
}

const MOST_WORDS = 12;

/** The area between the two lines: orange if there is more than in the other time, blue if there is less. */
function paintBetween(
	context: CanvasRenderingContext2D,
	{ frame: { box, span, colours }, interval, y }: Plot,
	{ values, before }: Pair,
): void {
	const palette = steps(colours.signed);
	const [less, more] = [0.15, 0.85].map((share) => palette[Math.floor(share * (palette.length - 1))] ?? colours.text);
	const [first, past] = columnsIn(span, interval, values.length);
	// one path of each colour, so that no seams are seen between columns
	const [fewer, greater] = [new Path2D(), new Path2D()];
	for (let column = first; column < past; column++) {
		const [now, then] = [values[column] ?? null, before[column] ?? null];
		if (now === null || then === null || now === then) continue;
		const [left, right] = [xPixel(box, span, column * interval), xPixel(box, span, (column + 1) * interval)];
		const [top, foot] = [y(Math.max(now, then)), y(Math.min(now, then))];
		(now > then ? greater : fewer).rect(left, top, right - left, foot - top);
	}
	context.globalAlpha = 0.35;
	for (const [path, colour] of [
		[fewer, less],
		[greater, more],
	] as const) {
		context.fillStyle = colour ?? colours.text;
		context.fill(path);
	}
	context.globalAlpha = 1;
}
