// SPDX-License-Identifier: Apache-2.0
import type { HeatMapCounts, HeatMapGroup, LossesOfKind, SparseCounts, ThemeColours } from "../generated/maps";
import { bitmapOf, type Paint, steps } from "./bitmap";
import { type Cells, fill, fullest, geometry, plus, shades, spotAt, wholeAxis } from "./cells";
import type { Content, Words } from "./content";
import type { Frame } from "./frame";
import { greys, pixel } from "./hues";
import { paintLegend } from "./legend";
import { anyLost } from "./lost";
import { mixtureOf } from "./mixture";
import { paintOverlays } from "./overlays";
import { paintBitmap, valueTicks } from "./paint";
import { type Kind, type Scale, scaleOf } from "./scale";
import type { Axis, Box, Span, YScale } from "./spaces";
import { type Tick, UNITS } from "./ticks";

/** A key of a map with its own counts. */
export interface Part {
	key: string;
	colour: string;
	cells: SparseCounts;
}

/** What is painted of a map, and how. */
export interface Look {
	/** Columns in which nothing was recorded, (first, one past the last). */
	blank: readonly Readonly<[number, number]>[];
	/** (First, one past the last) column that is answered for, null where that is not known. */
	window: Readonly<[number, number]> | null;
	/** What the map is of: a look at something else has its own axis and scale. */
	about: string;
	group: HeatMapGroup;
	map: HeatMapCounts;
	origin: number;
	/** The counts that are added up to what is painted: all of the map's, or some keys' alone. */
	shown: readonly SparseCounts[];
	/** Keys in their hues; what is painted and not theirs is grey. None: the palette of all. */
	parts: readonly Part[];
	kind: Kind;
	scale: YScale | "";
	crop: number;
	rows: { low: number; high: number } | null;
	overlays: boolean;
	/** How a cell's count is said. */
	words: (count: number, inColumn: number, inAll: number) => Words;
	/** How a row is said, such as `latency: 1 ms to 2 ms`. */
	row: (low: number, high: number) => Words;
}

/** Axis and scale of a graph, kept while a live map moves on so that neither colours nor rows flicker. */
export interface Held {
	key: string;
	/** Where what is shown began, and what the map held of which they were made: ns on the recording's clock. */
	from: number;
	origin: number;
	end: number;
	axis: Axis | null;
	scale: Scale | null;
	/** A value near which the axis has a mark. */
	at: number;
}

export const nothingHeld = (): Held => ({ key: "", from: 0, origin: 0, end: 0, axis: null, scale: null, at: 1 });

/** Cells are so wide and so high at least, in pixels of the canvas. */
const CELL = { wide: 2, high: 3 };

/** A heat map. */
export class Heat implements Content {
	readonly origin: number;
	readonly interval: number;
	readonly columns: number;
	readonly answered: [number, number] | null;
	readonly hatched: [number, number][];
	readonly compared = false;
	readonly idle: [number, number][];
	readonly lost: readonly LossesOfKind[];
	#cells: Cells | null = null;
	#seen = { above: 0, below: 0, total: 0 };

	constructor(
		readonly look: Look,
		private readonly held: Held,
	) {
		this.origin = look.origin;
		this.interval = look.group.interval_ns;
		this.columns = look.group.columns;
		const times = ([from, past]: Readonly<[number, number]>): [number, number] => [
			from * this.interval,
			past * this.interval,
		];
		this.answered = look.window && times(look.window);
		this.hatched = look.blank.map(times);
		this.idle = look.map.gaps.map(times);
		this.lost = look.map.lost;
	}

	get axis(): Axis {
		this.held.axis ??= axisOf(this.look);
		return this.held.axis;
	}

	get scale(): Scale {
		return this.held.scale ?? { kind: this.look.kind, counts: [], levels: [] };
	}

	/** Counts shown, and those above and below the axis. */
	get seen() {
		return this.#seen;
	}

	settle(shown: Span, box: Box): boolean {
		const { about, group, map, kind, crop, rows, scale } = this.look;
		const parts = this.look.parts.map((part) => part.key);
		const length = shown.to - shown.from;
		const what = [about, group.y, map.label, this.interval];
		const how = [kind, crop, rows, scale, parts, this.look.shown.length];
		const key = JSON.stringify([what, how, Math.round(length), box]);
		const { held, origin } = this;
		const [from, end] = [origin + shown.from, origin + this.columns * this.interval];
		const near = [from - held.from, origin - held.origin, end - held.end].every((far) => Math.abs(far) < length / 4);
		const stays = held.key === key && near && held.scale !== null && held.scale.counts.length > 0;
		if (!stays) held.axis = axisOf(this.look);
		const cells = this.#fill(shown, box.width, box.height);
		this.#seen = cells;
		this.#cells ??= cells;
		if (stays) return false;
		Object.assign(held, { key, from, origin, end, scale: scaleOf([shades(cells)], kind), at: fullest([cells]) });
		return true;
	}

	ticks(height: number): Tick[] {
		return valueTicks(this.axis, this.look.group.unit, this.held.at, height);
	}

	paint(context: CanvasRenderingContext2D, frame: Frame, ratio: number, shown: Span): void {
		const { group, map, overlays, parts } = this.look;
		const { axis, scale } = this;
		const cells = this.#fill(frame.span, frame.box.width, frame.box.height);
		this.#cells = cells;
		const palette = steps(frame.colours.palette);
		const of = (data: SparseCounts) => fill(data, cells);
		const mixture =
			parts.length > 0
				? mixtureOf(
						cells,
						parts.map((part) => ({ cells: of(part.cells), colour: part.colour })),
						palette,
					)
				: null;
		const paint: Paint = { scale, palette: palette.map(pixel), signed: false, mixture };
		const bitmap = bitmapOf(cells, axis, Math.round(frame.box.height * ratio), paint);
		paintBitmap(context, frame, bitmap, cells, this.interval);
		if (overlays) paintOverlays(context, frame, axis, group, map, shown);
	}

	legend(context: CanvasRenderingContext2D, box: Box, colours: ThemeColours): void {
		const { group, overlays, map } = this.look;
		paintLegend(context, box, colours, {
			scale: this.scale,
			palette: this.look.parts.length > 0 ? greys(steps(colours.palette)) : steps(colours.palette),
			signed: false,
			unit: UNITS[group.weight],
			lines: overlays ? group.lines : [],
			lift: anyLost(map.lost) ? 8 : 0,
		});
	}

	at(time: number, value: number): Words | null {
		const cells = this.#cells;
		const spot = cells && spotAt(cells, time / this.interval, value);
		if (!spot) return null;
		const inColumn = this.look.shown.reduce((sum, data) => sum + countOf(data, spot.first, spot.past), 0);
		return {
			...this.look.row(spot.low, spot.high),
			...this.look.words(cells.counts[spot.place] ?? 0, inColumn, this.#seen.total),
		};
	}

	get cells(): Cells | null {
		return this.#cells;
	}

	#fill(span: Span, width: number, height: number): Cells {
		const shape = geometry(this.look.group, span, this.axis, { width, height }, CELL);
		const [one, ...more] = this.look.shown.map((data) => fill(data, shape));
		return one && more.length === 0 ? one : plus(one ? [one, ...more] : [], shape);
	}
}

/** All counts of some columns, also those above and below the axis. */
function countOf(data: SparseCounts, first: number, past: number): number {
	const place = (column: number) => data.starts[Math.min(Math.max(0, column), data.starts.length - 1)] ?? 0;
	let sum = 0;
	for (let k = place(first); k < place(past); k++) sum += data.counts[k] ?? 0;
	return sum;
}

/** The part of y that a look shows. */
export function axisOf({ group, scale, crop, rows }: Pick<Look, "group" | "scale" | "crop" | "rows">): Axis {
	const whole = wholeAxis(group, scale || group.y_scale, crop);
	if (!rows) return whole;
	return { ...whole, low: whole.scale === "log" ? Math.max(rows.low, 0.5) : rows.low, high: rows.high };
}
