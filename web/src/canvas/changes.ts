// SPDX-License-Identifier: Apache-2.0
import type { Difference } from "../generated/api";
import type { HeatMapGroup, SparseCounts, ThemeColours } from "../generated/maps";
import { bitmapOf, steps } from "./bitmap";
import { type Cells, fill, fullest, geometry, type Shape, shades, spotAt } from "./cells";
import { Compared } from "./compared";
import type { Content, Words } from "./content";
import type { Frame } from "./frame";
import { pixel } from "./hues";
import { paintLegend } from "./legend";
import { paintBitmap, valueTicks } from "./paint";
import { type Kind, type Scale, scaleOf } from "./scale";
import type { Axis, Box, Span } from "./spaces";
import { type Tick, UNITS } from "./ticks";

/** How a difference of two parts of time is painted. */
export interface ChangesLook {
	answer: Difference;
	group: HeatMapGroup;
	axis: Axis;
	kind: Kind;
	/** How a cell is said: I/Os (or bytes) per second more or less, and the counts of both. */
	words: (cell: { change: number; count: number; other: number }) => Words;
	row: (low: number, high: number) => Words;
}

const CELL = { wide: 2, high: 3 };

/** The map of one part of time less that of another: blue where there was less, orange where there was more. */
export class Changes extends Compared implements Content {
	readonly axis: Axis;
	#scale: Scale | null = null;
	#cells: Cells | null = null;
	#of: Cells[] = [];
	#at = 1;

	constructor(readonly look: ChangesLook) {
		super(look.answer, look.answer.gaps);
		this.axis = look.axis;
	}

	get cells(): Cells | null {
		return this.#cells;
	}

	settle(shown: Span, box: Box): boolean {
		const before = JSON.stringify(this.#scale);
		const change = this.#change(this.#shape(shown, box));
		this.#scale = scaleOf([shades(change)], this.look.kind);
		this.#at = fullest([change]);
		return before !== JSON.stringify(this.#scale);
	}

	ticks(height: number): Tick[] {
		return valueTicks(this.axis, this.look.group.unit, this.#at, height);
	}

	paint(context: CanvasRenderingContext2D, frame: Frame, ratio: number): void {
		const shape = this.#shape(frame.span, frame.box);
		const change = this.#change(shape);
		this.#cells = change;
		this.#of = this.look.group.maps.map((map) => fill(map.cells, shape));
		const palette = steps(frame.colours.signed).map(pixel);
		const height = Math.round(frame.box.height * ratio);
		const scale = this.#scale ?? scaleOf([shades(change)], this.look.kind);
		const bitmap = bitmapOf(change, this.axis, height, { scale, palette, signed: true, mixture: null });
		paintBitmap(context, frame, bitmap, change, this.interval);
	}

	legend(context: CanvasRenderingContext2D, box: Box, colours: ThemeColours): void {
		const scale = this.#scale;
		if (!scale) return;
		paintLegend(context, box, colours, {
			scale,
			palette: steps(colours.signed),
			signed: true,
			unit: UNITS[this.look.group.weight],
			lines: [],
			lift: 0,
		});
	}

	at(time: number, value: number): Words | null {
		const cells = this.#cells;
		if (!cells || this.hatched.some(([from, to]) => time >= from && time < to)) return null;
		const spot = spotAt(cells, time / this.interval, value);
		if (!spot) return null;
		const [other, count] = this.#of.map((each) => each.counts[spot.place] ?? 0);
		return {
			...this.look.row(spot.low, spot.high),
			...this.look.words({
				change: cells.counts[spot.place] ?? 0,
				count: count ?? 0,
				other: other ?? 0,
			}),
		};
	}

	#shape(span: Span, { width, height }: Box): Shape {
		return geometry(this.look.group, span, this.axis, { width, height }, CELL);
	}

	#change(shape: Shape): Cells {
		return changeOf(this.look.answer, shape);
	}
}

/** A difference per second in a geometry: averaged over the columns of a cell that were compared, added up over its rows. */
export function changeOf(answer: Pick<Difference, "cells" | "columns" | "gaps">, shape: Shape): Cells {
	const { starts, rows, values } = answer.cells;
	const data: SparseCounts = { starts, rows, counts: values };
	const cells = fill(data, shape);
	const compared = comparedIn(answer, shape);
	return { ...cells, counts: cells.counts.map((value, i) => value / Math.max(1, compared[i % shape.columns] ?? 0)) };
}

/** How many columns of each cell were compared: those in gaps and beyond the end were not. */
function comparedIn({ columns, gaps }: Pick<Difference, "columns" | "gaps">, shape: Shape): number[] {
	const within = (from: number, past: number, start: number) =>
		Math.max(0, Math.min(past, start + shape.joined, columns) - Math.max(from, start, 0));
	return Array.from({ length: shape.columns }, (_, cell) => {
		const start = shape.first + cell * shape.joined;
		return gaps.reduce((left, [from, past]) => left - within(from, past, start), within(0, columns, start));
	});
}
