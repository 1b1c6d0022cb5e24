// SPDX-License-Identifier: Apache-2.0
import { placeOf } from "./rows";

export type Kind = "rank" | "log" | "linear";

/** From a count to a level of colour between 0 (fewest) and 1 (most). Once made it stays, so that a moving map does not flicker. */
export interface Scale {
	kind: Kind;
	counts: number[];
	levels: number[];
}

/**
 * The scale of all these cells together; empty ones do not count. rank: the share of cells with fewer, those with as many counted
 * half, stretched to 0..1; log: between the logarithms of fewest and most; linear: proportional to the most.
 * Python does the same for pictures; `tests/vectors/heatmap.json` holds both to it.
 */
export function scaleOf(maps: readonly ArrayLike<number>[], kind: Kind): Scale {
	const times = new Map<number, number>();
	for (const cells of maps) {
		for (let i = 0; i < cells.length; i++) {
			const size = Math.abs(cells[i] ?? 0);
			if (size > 0) times.set(size, (times.get(size) ?? 0) + 1);
		}
	}
	const counts = [...times.keys()].sort((a, b) => a - b);
	const most = counts[counts.length - 1] ?? 1;
	const fewest = counts[0] ?? 1;
	if (counts.length <= 1) return { kind, counts, levels: counts.map(() => 1) };
	if (kind === "linear") return { kind, counts, levels: counts.map((count) => count / most) };
	if (kind === "log") {
		const span = Math.log(most) - Math.log(fewest);
		return { kind, counts, levels: counts.map((count) => (Math.log(count) - Math.log(fewest)) / span) };
	}
	let before = 0;
	const ranks = counts.map((count) => {
		const here = times.get(count) ?? 0;
		before += here;
		return before - here / 2;
	});
	const first = ranks[0] ?? 0;
	const span = (ranks[ranks.length - 1] ?? 1) - first;
	return { kind, counts, levels: ranks.map((rank) => (rank - first) / span) };
}

/** The level of a count, or of its magnitude; NaN for zero, which is background and never a colour. */
export function levelOf(scale: Scale, count: number): number {
	return count === 0 || scale.counts.length === 0
		? Number.NaN
		: interpolate(scale.counts, scale.levels, Math.abs(count));
}

/** The count that has a level, for a legend; NaN where the scale is empty. */
export function countAt(scale: Scale, level: number): number {
	return scale.counts.length === 0 ? Number.NaN : interpolate(scale.levels, scale.counts, level);
}

function interpolate(from: readonly number[], to: readonly number[], value: number): number {
	const place = placeOf(from, value);
	const last = from.length - 1;
	if (place < 0) return to[0] ?? Number.NaN;
	if (place >= last) return to[last] ?? Number.NaN;
	const [a, b] = [from[place] ?? 0, from[place + 1] ?? 0];
	const [left, right] = [to[place] ?? 0, to[place + 1] ?? 0];
	return b === a ? left : left + ((right - left) * (value - a)) / (b - a);
}
