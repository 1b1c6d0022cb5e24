// SPDX-License-Identifier: Apache-2.0
import type { Cells } from "./cells";
import { type Lab, lightnesses, mixed, pixelOf, rampOf } from "./hues";

/** The keys of a map in their hues: cells of each on the geometry of the map of all. */
export interface Mixture {
	lightness: number[];
	/** The counts of each key, and its hue at each step. */
	parts: { counts: Float64Array; ramp: Lab[] }[];
	/** Counts of the map of all: what is not a key's is grey. */
	all: Float64Array;
}

/** Keys with their colours, over a palette with a lightness by count. */
export function mixtureOf(
	all: Cells,
	parts: readonly { cells: Cells; colour: string }[],
	palette: readonly string[],
): Mixture {
	const lightness = lightnesses(palette);
	return {
		lightness,
		parts: parts.map(({ cells, colour }) => ({ counts: cells.counts, ramp: rampOf(colour, lightness) })),
		all: all.counts,
	};
}

/** The colour of a cell at a step of the palette: each key's hue by its share of the cell. */
export function labOfCell(mixture: Mixture, place: number, step: number): Lab {
	const all = mixture.all[place] ?? 0;
	const shares = mixture.parts.map(
		({ counts, ramp }) => [all > 0 ? (counts[place] ?? 0) / all : 0, ramp[step] ?? [0, 0, 0]] as const,
	);
	return mixed(mixture.lightness[step] ?? 0, shares);
}

/** Pixels of cells by their place and count; `stepOf` leads from a count to a step of the palette. */
export function pixelsOfMixture(
	mixture: Mixture,
	stepOf: (count: number) => number,
): (place: number, count: number) => number {
	return (place, count) => {
		const step = stepOf(count);
		return step < 0 ? 0 : pixelOf(labOfCell(mixture, place, step));
	};
}
