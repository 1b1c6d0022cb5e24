// SPDX-License-Identifier: Apache-2.0
import type { LossesOfKind, ThemeColours } from "../generated/maps";
import type { Content, Words } from "./content";
import type { Frame } from "./frame";
import { REST } from "./hues";
import {
	ceiling,
	columnsIn,
	flooring,
	type Layer,
	layersOf,
	leastOf,
	mostOf,
	type Numbered,
	paintLayer,
	recordedPart,
	runs,
	stacked,
	valuesOf,
	wholeColumns,
} from "./lines";
import { type Axis, type Box, type Span, xPixel, type YScale, yPixel } from "./spaces";
import { grouped, linearTicks, logTicks, mostTicks, quantity, type Tick, type Unit } from "./ticks";
import type { Coloured } from "./tooltip";

/** What is painted of numbers over time, and how. */
export interface NumbersLook {
	answer: Numbered;
	/** Whether layers are stacked. */
	stacked: boolean;
	/** Of the vertical axis; a stack begins at zero. */
	scale: YScale;
	highlights: readonly string[];
	mode: "highlight" | "isolate" | "exclude" | "rainbow";
	colour: (key: string) => string;
	/** How a value is said. */
	words: (value: number | null) => string;
	/** The grey of layers that are there but not highlighted. */
	faint: string;
}

/** Layers as a mode shows them: those that the axis is made for first, then others in grey. */
export function chosenLayers(look: Pick<NumbersLook, "answer" | "highlights" | "mode" | "colour" | "faint">): {
	layers: Layer[];
	behind: Layer[];
} {
	const all = layersOf(look.answer, look.colour);
	const marked = new Set(look.highlights);
	const chosen = all.filter((layer) => marked.has(layer.name));
	const others = all.filter((layer) => !marked.has(layer.name));
	if (chosen.length === 0 || look.mode === "rainbow") return { layers: all, behind: [] };
	if (look.mode === "exclude") return { layers: others, behind: [] };
	const behind = look.mode === "isolate" ? [] : others.map((layer) => ({ ...layer, colour: look.faint }));
	return { layers: chosen, behind };
}

const MOST_WORDS = 8;
/** Opacity of the background over an incomplete column. */
const FADED = 0.55;
/** Areas have a line between them where columns are so many pixels wide: between narrow ones it would hide the areas. */
const APART = 5;

/** Numbers over time: lines, or stacked areas. */
export class Numbers implements Content {
	readonly origin: number;
	readonly interval: number;
	readonly columns: number;
	readonly answered: [number, number] | null;
	readonly hatched: [number, number][];
	readonly compared = false;
	readonly lost: readonly LossesOfKind[];
	readonly idle = [];
	readonly cells = null;
	readonly layers: Layer[];
	readonly #behind: Layer[];
	/** Values where layers are painted, those behind last. */
	readonly #edges: (readonly (number | null)[])[];
	/** What was recorded of the answer's time, and its whole columns: (first, one past the last). */
	readonly #part: Span;
	readonly #whole: readonly [number, number];
	#low = 0;
	#high = 1;

	constructor(readonly look: NumbersLook) {
		const { answer } = look;
		const { layers, behind } = chosenLayers(look);
		this.layers = layers;
		this.#behind = behind;
		this.#edges = look.stacked ? stacked([...layers, ...behind]) : [...layers, ...behind].map((layer) => layer.values);
		this.origin = answer.t0_ns;
		this.interval = answer.interval_ns;
		const values = valuesOf(answer);
		this.columns = values.length;
		const times = ([from, past]: Readonly<[number, number]>): [number, number] => [
			from * this.interval,
			past * this.interval,
		];
		// a percentile is lacking as well where there was no I/O, and its columns end with the last
		const lines = answer.kind === "percentiles";
		const window = lines ? answer.window : ([0, this.columns] as const);
		this.answered = window && times(window);
		this.hatched = (lines ? answer.gaps : gapsOf(values)).map(times);
		this.lost = answer.losses;
		this.#part = recordedPart(answer);
		this.#whole = wholeColumns(this.#part, this.interval, this.columns);
	}

	get axis(): Axis {
		return { low: this.#low, high: this.#high, scale: this.#low > 0 ? "log" : "linear" };
	}

	settle(shown: Span): boolean {
		const [first, past] = this.#measured(shown);
		const edges = this.#edges.slice(0, this.layers.length);
		const high = ceiling(mostOf(edges, first, past));
		const least = this.look.scale === "log" && !this.look.stacked ? leastOf(edges, first, past) : 0;
		const low = least > 0 ? flooring(least) : 0;
		if (high === this.#high && low === this.#low) return false;
		this.#high = high;
		this.#low = low;
		return true;
	}

	/** The columns for which the axis is made: those that are shown and whole, or those that are shown. */
	#measured(shown: Span): [number, number] {
		const [first, past] = columnsIn(shown, this.interval, this.columns);
		const whole: [number, number] = [Math.max(first, this.#whole[0]), Math.min(past, this.#whole[1])];
		return whole[1] > whole[0] ? whole : [first, past];
	}

	ticks(height: number): Tick[] {
		const { unit } = this.look.answer;
		if (this.#low <= 0) return numberTicks(this.#high, unit, height);
		return logTicks(this.#low, this.#high, mostTicks(height, 9), unitOf(unit));
	}

	paint(context: CanvasRenderingContext2D, frame: Frame): void {
		const y = (value: number) => yPixel(frame.box, this.axis, value);
		const plot = { frame, interval: this.interval, part: this.#part, y };
		const all = [...this.layers, ...this.#behind];
		const edges = this.#edges;
		const wide = (frame.box.width * this.interval) / (frame.span.to - frame.span.from) >= APART;
		// the highest first, so that lower ones are painted over it; of lines, the rear one first
		for (let i = all.length - 1; i >= 0; i--) {
			const layer = all[i];
			if (!layer) continue;
			const single = this.layers.length === 1 && i === 0;
			// a line in the background colour separates neighbours; grey parts are one area
			const look = this.look.stacked
				? {
						colour: layer.colour,
						width: layer.colour === REST || !wide ? 0 : 0.8,
						tint: 1,
						line: frame.colours.background,
					}
				: { colour: layer.colour, width: i < this.layers.length ? 1.6 : 1, tint: single ? 0.18 : 0 };
			paintLayer(context, plot, edges[i] ?? [], look);
		}
		this.#fade(context, frame);
	}

	/** Make columns faint of which a part was not recorded yet: their rate is that of a few I/Os. */
	#fade(context: CanvasRenderingContext2D, { box, span, colours }: Frame): void {
		const [first, past] = this.#whole;
		const { from, to } = this.#part;
		context.fillStyle = colours.background;
		context.globalAlpha = FADED;
		for (const [start, end] of [
			[from, first * this.interval],
			[past * this.interval, to],
		] as const) {
			const left = xPixel(box, span, start);
			if (end > start) context.fillRect(left, box.top, xPixel(box, span, end) - left, box.height);
		}
		context.globalAlpha = 1;
	}

	/** How much of a column was recorded, in words; "" where all of it was. */
	#lacks(column: number): string {
		const { from, to } = this.#part;
		const start = column * this.interval;
		const length = Math.min(to, start + this.interval) - Math.max(from, start);
		if (column >= this.#whole[0] && column < this.#whole[1]) return "";
		if (length >= this.interval || length <= 0) return "";
		return `${quantity(length, "ns", 2)} of ${quantity(this.interval, "ns", 2)}`;
	}

	legend(_context: CanvasRenderingContext2D, _box: Box, _colours: ThemeColours): void {
		// the left panel is the legend
	}

	at(time: number, value: number): Words | null {
		const column = Math.floor(time / this.interval);
		if (column < 0 || column >= this.columns) return null;
		const near = this.nearest(column, value);
		const layers = [...this.layers, ...this.#behind]
			.map(({ name, colour, values }) => ({ name, colour, value: values[column] ?? null }))
			.sort((one, other) => (other.value ?? -1) - (one.value ?? -1));
		// zeros say nothing where another value is not zero
		const largest = layers.filter(({ value }) => value);
		const listed = largest.length > 0 ? largest : layers.slice(0, 1);
		const shown = listed.slice(0, MOST_WORDS).map(({ name, colour, value }): [string, Coloured] => {
			const isNear = name === near && layers.length > 1;
			return [name, { words: this.look.words(value), colour, near: isNear }];
		});
		const left = listed.length - shown.length;
		const lacks = this.#lacks(column);
		return {
			...Object.fromEntries(shown),
			...(left > 0 && { "…": `${left} more` }),
			...(lacks && { recorded: lacks }),
		};
	}

	/** The layer that is painted at a value of a column, or nearest to it; "" for none. */
	nearest(column: number, value: number): string {
		const all = [...this.layers, ...this.#behind];
		if (this.look.stacked) {
			const place = this.#edges.findIndex((edge) => (edge[column] ?? -1) >= value);
			return all[place]?.name ?? "";
		}
		const distance = (layer: Layer) => Math.abs((layer.values[column] ?? Number.POSITIVE_INFINITY) - value);
		const best = all.reduce<Layer | null>((one, each) => (!one || distance(each) < distance(one) ? each : one), null);
		return best && Number.isFinite(distance(best)) ? best.name : "";
	}
}

/** Marks of an axis of numbers from zero on. */
export function numberTicks(high: number, unit: string, height: number): Tick[] {
	const [factor, after] = unit === "1" ? [100, " %"] : [1, unit.endsWith("/s") ? "/s" : ""];
	const found = linearTicks(0, factor * high, mostTicks(height, 6), unitOf(unit));
	return found.map(({ value, label }) => ({
		value: value / factor,
		label: value > 0 ? `${grouped(label)}${after}` : "0",
	}));
}

/** The unit of an axis: that of a number per second without the second. */
const unitOf = (unit: string): Unit => (unit === "ns" ? "ns" : unit.startsWith("B") ? "B" : "");

/** Runs of columns in which nothing was recorded. */
function gapsOf(values: readonly (number | null)[]): [number, number][] {
	return runs(values.map((value) => (value === null ? 1 : null)));
}
