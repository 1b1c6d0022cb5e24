// SPDX-License-Identifier: Apache-2.0
import { SECOND, type Span } from "../../api/worksheet";
import { fill } from "../../canvas/cells";
import { inside, joined } from "../../canvas/frame";
import { axisOf, type Look } from "../../canvas/heat";
import { joinedRows } from "../../canvas/rows";
import { type Axis, toPosition } from "../../canvas/spaces";
import { quantity, type Unit } from "../../canvas/ticks";

/** A range of a map's values, and how many it holds. */
export interface Row {
	low: number;
	high: number;
	count: number;
}

/** Ranges at most. */
const MOST = 18;

/** What a map holds in a span of time by ranges of its values, the highest first; empty ones at the ends are left out. */
export function rowsOf(look: Look, span: Span): Row[] {
	const { group } = look;
	const axis = axisOf({ ...look, crop: 0 });
	const within = group.bounds.flatMap((bound, i) =>
		bound >= axis.low * (1 - 1e-9) && bound <= axis.high * (1 + 1e-9) ? [i] : [],
	);
	const [bottom, top] = [within[0] ?? 0, within.at(-1) ?? 0];
	if (top <= bottom) return [];
	const starts = [...startsOf(group.bounds, bottom, top, axis, group.unit), top];
	const edges = starts.map((bucket) => group.bounds[bucket] ?? 0);
	const [touched, end] = columnsOf(look, span);
	const [first, past] = [Math.max(0, touched), Math.min(group.columns, end)];
	const shape = { first, joined: Math.max(1, past - first), columns: 1, starts, edges, densities: [] };
	const counts = edges.slice(1).map(() => 0);
	if (past > first)
		for (const data of look.shown)
			for (const [row, count] of fill(data, shape).counts.entries()) counts[row] = (counts[row] ?? 0) + count;
	const rows = counts.map((count, row) => ({ low: edges[row] ?? 0, high: edges[row + 1] ?? 0, count }));
	const held = rows.flatMap((row, i) => (row.count > 0 ? [i] : []));
	return rows.slice(held[0] ?? 0, (held.at(-1) ?? -1) + 1).reverse();
}

/** The columns that a span of time touches, the first and the one after the last: a map has those between its I/Os alone. */
const columnsOf = ({ group, origin }: Look, span: Span): [number, number] => [
	Math.floor((span.from - origin) / group.interval_ns),
	Math.ceil((span.until - origin) / group.interval_ns),
];

/** The seconds that these ranges are of: those in whole columns that are answered, with I/Os or without, less what was not recorded. */
export function secondsOf(look: Look, span: Span, unrecorded: readonly Span[]): number {
	const { group, origin, blank, window } = look;
	const [first, past] = columnsOf(look, span);
	const [from, to] = [Math.max(first, window?.[0] ?? first), Math.min(past, window?.[1] ?? past)];
	const shown = { from: from * group.interval_ns, to: to * group.interval_ns };
	const blanks = joined([
		...unrecorded.map((each): [number, number] => [each.from - origin, each.until - origin]),
		...blank.map(([start, end]): [number, number] => [start * group.interval_ns, end * group.interval_ns]),
	]);
	const missing = inside(blanks, shown).reduce((sum, [start, end]) => sum + end - start, 0);
	return Math.max(0, shown.to - shown.from - missing) / SECOND;
}

/** Round values of an axis of time, and what is near enough to one to be called by its name. */
const ROUND = [10, 20, 50];
const NEAR = 0.012;

/** The round value next to a time in ns, such as 20 µs. */
function roundTime(value: number): number {
	const power = 10 ** (Math.floor(Math.log10(value)) - 1);
	const distance = (each: number) => Math.abs(Math.log(each / value));
	return [...ROUND, 100]
		.map((each) => each * power)
		.reduce((one, other) => (distance(other) < distance(one) ? other : one));
}

/** A bound of a range in few digits: the nearest mark of the axis. */
export function boundWords(value: number, unit: Unit): string {
	if (unit !== "ns" || value <= 0) return quantity(value, unit, 3);
	const round = roundTime(value);
	return Math.abs(value / round - 1) < NEAR ? quantity(round, unit) : quantity(value, unit, 3);
}

/** A range in few digits, its unit once where both bounds have the same. */
export function rangeWords({ low, high }: Pick<Row, "low" | "high">, unit: Unit): string {
	const [from, to] = [boundWords(low, unit), boundWords(high, unit)];
	const [number, symbol] = from.split(" ");
	return `${unit === "B" && to.endsWith(` ${symbol}`) ? number : from} – ${to}`;
}

/** The buckets that begin next to round times, the same in all maps of one grid. */
function roundBuckets(bounds: readonly number[], inner: readonly number[]): number[] {
	const nearest = new Map<number, number>();
	for (const bucket of inner) {
		const value = bounds[bucket] ?? 0;
		if (value <= 0) continue;
		const round = roundTime(value);
		const before = bounds[nearest.get(round) ?? -1];
		if (before === undefined || Math.abs(value - round) < Math.abs(before - round)) nearest.set(round, bucket);
	}
	// at the ends the nearest bucket may be far from its round time
	return [...nearest]
		.filter(([round, bucket]) => Math.abs((bounds[bucket] ?? 0) / round - 1) < 0.1)
		.map(([, bucket]) => bucket);
}

/**
 * The first bucket of each range: round times; octaves of other values if these are few enough, otherwise equal heights.
 */
function startsOf(bounds: readonly number[], bottom: number, top: number, axis: Axis, unit: Unit): number[] {
	const inner = Array.from({ length: top - bottom - 1 }, (_, i) => bottom + 1 + i);
	if (axis.scale === "log" && unit === "ns") {
		const all = roundBuckets(bounds, inner);
		const decades = all.filter((bucket) => Number.isInteger(Math.log10(roundTime(bounds[bucket] ?? 1))));
		const starts = all.length < MOST ? all : decades;
		if (starts.length > 0 && starts.length < MOST) return [bottom, ...starts];
	}
	const octaves = inner.filter((bucket) => Number.isInteger(Math.log2(bounds[bucket] ?? 0)));
	if (axis.scale === "log" && octaves.length > 0 && octaves.length < MOST) return [bottom, ...octaves];
	const places = bounds.slice(bottom, top + 1).map((bound) => MOST * toPosition(axis, Math.max(bound, axis.low)));
	return joinedRows(places, 1).map((start) => start + bottom);
}
