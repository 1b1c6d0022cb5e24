// SPDX-License-Identifier: Apache-2.0
import { countInside } from "../canvas/cells";
import type { Area } from "../canvas/spaces";
import type { HeatMapCounts, HeatMapGroup } from "../generated/maps";

/** A value of a dimension: its share of what the rectangle holds, and of everything else. */
export interface Share {
	name: string;
	count: number;
	inside: number;
	outside: number;
}

/** The contents of a rectangle, and their shares by name. */
export interface Who {
	inside: number;
	total: number;
	dimensions: { name: string; shares: Share[] }[];
}

/** Shares inside against outside for each dimension, those that differ most first. */
export function who(map: HeatMapCounts, group: HeatMapGroup, area: Area): Who {
	const total = sum(map.cells.counts);
	const inside = countInside(map.cells, area, group);
	const share = (part: number, whole: number) => (whole > 0 ? part / whole : 0);
	const dimensions = map.dimensions.map(({ name, parts }) => ({
		name,
		shares: parts
			.map((part) => {
				const count = countInside(part.cells, area, group);
				const beyond = sum(part.cells.counts) - count;
				return { name: part.name, count, inside: share(count, inside), outside: share(beyond, total - inside) };
			})
			.sort((a, b) => Math.abs(b.inside - b.outside) - Math.abs(a.inside - a.outside)),
	}));
	return { inside, total, dimensions };
}

function sum(values: ArrayLike<number>): number {
	let total = 0;
	for (let k = 0; k < values.length; k++) total += values[k] ?? 0;
	return total;
}
