// SPDX-License-Identifier: Apache-2.0
import type { Cells } from "./cells";
import { type Mixture, pixelsOfMixture } from "./mixture";
import { levelOf, type Scale } from "./scale";
import { type Axis, toPosition } from "./spaces";

/** Steps of a palette. */
export const STEPS = 256;

/** The place of a count in a palette, -1 for none; a signed palette has two halves. */
export function stepOf(scale: Scale, count: number, signed: boolean): number {
	const level = levelOf(scale, count);
	if (Number.isNaN(level)) return -1;
	const step = Math.round(level * (STEPS - 1));
	if (!signed) return step;
	return count < 0 ? STEPS - 1 - step : STEPS + step;
}

/** `#rrggbb` of each step of a palette that is written as one string of digits. */
export function steps(palette: string): string[] {
	return Array.from({ length: palette.length / 6 }, (_, i) => `#${palette.slice(6 * i, 6 * i + 6)}`);
}

/** The pixels between the edges of rows, from the top: (first, one past the last) of each row; rows outside the plot have none. */
export function pixelRows(edges: readonly number[], axis: Axis, height: number): [number, number][] {
	const level = (value: number) => {
		const place = Math.round(height * (1 - toPosition(axis, Math.max(value, axis.low))));
		return Math.min(height, Math.max(0, place));
	};
	return edges.slice(1).map((top, row) => [level(top), level(edges[row] ?? top)]);
}

/**
 * A picture of cells, a pixel for each column and `height` pixels for all rows: what is drawn is this, stretched in time. Cells
 * without a count are transparent.
 */
export function pixelsOf(
	cells: Cells,
	axis: Axis,
	height: number,
	colour: (place: number, shade: number) => number,
): Uint32Array<ArrayBuffer> {
	const { columns, counts, densities } = cells;
	const found = new Uint32Array(columns * height);
	for (const [row, [top, bottom]] of pixelRows(cells.edges, axis, height).entries()) {
		if (bottom <= top) continue;
		const start = top * columns;
		const density = densities[row] ?? 1;
		for (let column = 0; column < columns; column++) {
			const place = row * columns + column;
			const count = counts[place] ?? 0;
			if (count !== 0) found[start + column] = colour(place, count * density);
		}
		for (let line = top + 1; line < bottom; line++) found.copyWithin(line * columns, start, start + columns);
	}
	return found;
}

/** What decides the colour of cells: a scale with a palette, of two halves for a difference, or a mixture of keys. */
export interface Paint {
	scale: Scale;
	/** Pixels of the palette's steps. */
	palette: readonly number[];
	signed: boolean;
	mixture: Mixture | null;
}

/** A canvas with the picture of cells. */
export function bitmapOf(cells: Cells, axis: Axis, height: number, paint: Paint): HTMLCanvasElement {
	const canvas = document.createElement("canvas");
	canvas.width = Math.max(1, cells.columns);
	canvas.height = Math.max(1, height);
	const { scale, palette, signed, mixture } = paint;
	const known = new Map<number, number>();
	const plain = (_: number, count: number) => {
		let found = known.get(count);
		if (found === undefined) {
			found = palette[stepOf(scale, count, signed)] ?? 0;
			known.set(count, found);
		}
		return found;
	};
	const step = (count: number) => stepOf(scale, count, false);
	const colour = mixture ? pixelsOfMixture(mixture, step) : plain;
	const pixels = pixelsOf(cells, axis, canvas.height, colour);
	const data = new ImageData(new Uint8ClampedArray(pixels.buffer), canvas.width, canvas.height);
	canvas.getContext("2d")?.putImageData(data, 0, 0);
	return canvas;
}
