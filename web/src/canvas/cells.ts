// SPDX-License-Identifier: Apache-2.0
import type { HeatMapGroup, SparseCounts } from "../generated/maps";
import { densitiesOf, joinedRows, placeOf } from "./rows";
import { type Area, type Axis, type Span, toPosition, type YScale } from "./spaces";

/**
 * What is drawn: columns `first`, `first + joined`... of the map, rows between `edges` (values, ascending), and counts row by row.
 * `densities`: factor of each row's counts for its colour.
 */
export interface Cells {
	first: number;
	joined: number;
	columns: number;
	starts: number[];
	edges: number[];
	densities: number[];
	counts: Float64Array;
	above: number;
	below: number;
	total: number;
}

/** Cells without their counts. */
export type Shape = Omit<Cells, "counts" | "above" | "below" | "total">;

/** The geometry that all maps of a group share: which columns and buckets join to cells of at least `wide` by `high` pixels. */
export function geometry(
	group: Pick<HeatMapGroup, "interval_ns" | "columns" | "bounds" | "y">,
	span: Span,
	axis: Axis,
	size: { width: number; height: number },
	cell: { wide: number; high: number },
): Shape {
	const from = span.from / group.interval_ns;
	const to = span.to / group.interval_ns;
	let joined = 1;
	while ((size.width / (to - from)) * joined < cell.wide) joined *= 2;
	const first = Math.floor(from / joined + 1e-9) * joined;
	const columns = Math.max(1, Math.ceil((Math.min(to, group.columns) - first) / joined - 1e-9));
	const bottom = Math.max(0, placeOf(group.bounds, axis.low));
	const above = group.bounds.findIndex((bound) => bound >= axis.high - 1e-9 * axis.high);
	const top = Math.max(bottom + 1, above < 0 ? group.bounds.length - 1 : above);
	const bounds = group.bounds.slice(bottom, top + 1);
	const pixels = bounds.map((bound) => toPosition(axis, Math.max(bound, axis.low)) * size.height);
	const starts = joinedRows(pixels, cell.high).map((start) => start + bottom);
	const edges = [...starts, top].map((bucket) => group.bounds[bucket] ?? 0);
	// sizes are few and exact: a row's height says nothing of how many there are
	const heights = edges.map((edge) => toPosition(axis, edge > 0 || axis.scale === "linear" ? edge : axis.low));
	const densities = group.y === "size" ? starts.map(() => 1) : densitiesOf(heights);
	return { first, joined, columns, starts: [...starts, top], edges, densities };
}

/** Position of a cell: its place among the counts, its columns of the map (`past` is not in it), and its values. */
export interface Spot {
	place: number;
	column: number;
	first: number;
	past: number;
	low: number;
	high: number;
}

/** The cell at a column of the map, which may be a part of one, and a value; null where there is none. */
export function spotAt(cells: Cells, at: number, value: number): Spot | null {
	const column = Math.floor((at - cells.first) / cells.joined);
	const row = placeOf(cells.edges, value);
	if (column < 0 || column >= cells.columns || row < 0 || row + 1 >= cells.edges.length) return null;
	const first = cells.first + column * cells.joined;
	const [low, high] = [cells.edges[row] ?? 0, cells.edges[row + 1] ?? 0];
	return { place: row * cells.columns + column, column, first, past: first + cells.joined, low, high };
}

/** Counts of one map in a geometry; each count of the columns shown is in one cell, above or below. */
export function fill(data: SparseCounts, shape: Shape): Cells {
	const rows = shape.starts.length - 1;
	const counts = new Float64Array(rows * shape.columns);
	const bottom = shape.starts[0] ?? 0;
	const top = shape.starts[rows] ?? 0;
	const rowOf = new Int32Array(top - bottom);
	for (let row = 0; row < rows; row++) {
		rowOf.fill(row, (shape.starts[row] ?? 0) - bottom, (shape.starts[row + 1] ?? 0) - bottom);
	}
	let [above, below, total] = [0, 0, 0];
	const last = Math.min(data.starts.length - 1, shape.first + shape.columns * shape.joined);
	for (let column = Math.max(0, shape.first); column < last; column++) {
		const cell = Math.floor((column - shape.first) / shape.joined);
		for (let k = data.starts[column] ?? 0; k < (data.starts[column + 1] ?? 0); k++) {
			const bucket = data.rows[k] ?? 0;
			const count = data.counts[k] ?? 0;
			total += count;
			if (bucket >= top) above += count;
			else if (bucket < bottom) below += count;
			else {
				const place = (rowOf[bucket - bottom] ?? 0) * shape.columns + cell;
				counts[place] = (counts[place] ?? 0) + count;
			}
		}
	}
	return { ...shape, counts, above, below, total };
}

/** Counts of maps on one axis as their colours show them: those of a row by its height. */
export function shades(cells: Pick<Cells, "columns" | "counts" | "densities">): Float64Array {
	const { columns, densities } = cells;
	return cells.counts.map((count, place) => count * (densities[Math.floor(place / columns)] ?? 1));
}

/** All of y on a scale of that kind, up to a crop (a share that is left above; -1: whatever is shown now). */
export function wholeAxis(group: HeatMapGroup, scale: YScale, crop = 0): Axis {
	const high = group.crops.find(([share]) => share === crop)?.[1] ?? group.high;
	const bottom = group.bounds[0] ?? 0;
	const low = scale === "log" ? group.least : group.y === "offset" ? bottom : 0;
	return { scale, low: low < high ? low : high / 2, high };
}

/** The highest whole value of the row that holds most in maps of one geometry, at least 1: the marks of an axis begin there. */
export function fullest(maps: readonly Cells[]): number {
	const [one] = maps;
	if (!one) return 1;
	const rows = one.edges.slice(1).map(() => 0);
	for (const { counts, columns } of maps)
		for (const [i, count] of counts.entries()) {
			const row = Math.floor(i / columns);
			rows[row] = (rows[row] ?? 0) + Math.abs(count);
		}
	const place = rows.indexOf(Math.max(...rows));
	return Math.max(1, (one.edges[place + 1] ?? 0) - 1);
}

/** Maps of one geometry added up. */
export function plus(maps: readonly Cells[], shape: Shape): Cells {
	const counts = new Float64Array((shape.starts.length - 1) * shape.columns);
	let [above, below, total] = [0, 0, 0];
	for (const each of maps) {
		for (let i = 0; i < counts.length; i++) counts[i] = (counts[i] ?? 0) + (each.counts[i] ?? 0);
		above += each.above;
		below += each.below;
		total += each.total;
	}
	return { ...shape, counts, above, below, total };
}

/** Cell by cell the second minus the first, of one geometry. */
export function minus(second: Cells, first: Cells): Cells {
	return { ...first, counts: second.counts.map((count, i) => count - (first.counts[i] ?? 0)) };
}

/** The rectangle grown to whole cells, so that what is counted in it is what is seen in it. */
export function snapped(area: Area, cells: Pick<Cells, "first" | "joined" | "edges">, interval: number): Area {
	const step = cells.joined * interval;
	const origin = cells.first * interval;
	const row = (value: number) => Math.min(cells.edges.length - 2, Math.max(0, placeOf(cells.edges, value)));
	const inside = Math.max(area.low, area.high - 1e-9 * Math.abs(area.high));
	return {
		from: origin + Math.floor((area.from - origin) / step + 1e-9) * step,
		to: origin + Math.max(1, Math.ceil((area.to - origin) / step - 1e-9)) * step,
		low: cells.edges[row(area.low)] ?? area.low,
		high: cells.edges[row(inside) + 1] ?? area.high,
	};
}

/** The sum of the counts of a map inside a rectangle with edges at bounds of columns and buckets. */
export function countInside(
	data: SparseCounts,
	area: Area,
	group: Pick<HeatMapGroup, "bounds" | "interval_ns">,
): number {
	const first = Math.max(0, Math.round(area.from / group.interval_ns));
	const last = Math.min(data.starts.length - 1, Math.round(area.to / group.interval_ns));
	const bottom = placeOf(group.bounds, area.low);
	const top = placeOf(group.bounds, area.high);
	let sum = 0;
	for (let k = data.starts[first] ?? 0; k < (data.starts[last] ?? 0); k++) {
		const bucket = data.rows[k] ?? 0;
		if (bucket >= bottom && bucket < top) sum += data.counts[k] ?? 0;
	}
	return sum;
}
