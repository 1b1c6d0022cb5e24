// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { pixelRows, pixelsOf } from "../src/canvas/bitmap";
import { type Cells, fill, geometry, plus } from "../src/canvas/cells";
import type { Axis } from "../src/canvas/spaces";
import type { SparseCounts } from "../src/generated/maps";

const axis: Axis = { low: 0, high: 80, scale: "linear" };
const bounds = Array.from({ length: 9 }, (_, i) => 10 * i);
const COLUMNS = 40;
const group = { interval_ns: 1000, columns: COLUMNS, bounds, y: "latency" as const };

/** Counts of every column by bucket. */
const tables = fc.array(
	fc.record({
		column: fc.integer({ min: 0, max: COLUMNS - 1 }),
		bucket: fc.integer({ min: 0, max: 7 }),
		count: fc.integer({ min: 1, max: 99 }),
	}),
	{ maxLength: 120 },
);
type Table = { column: number; bucket: number; count: number }[];

function sparse(table: Table): SparseCounts {
	const sorted = table.toSorted((one, other) => one.column - other.column || one.bucket - other.bucket);
	return {
		starts: Array.from({ length: COLUMNS + 1 }, (_, c) => sorted.filter((each) => each.column < c).length),
		rows: sorted.map((each) => each.bucket),
		counts: sorted.map((each) => each.count),
	};
}

const cellsOf = (table: Table, from: number, to: number, width: number): Cells =>
	fill(
		sparse(table),
		geometry(group, { from: 1000 * from, to: 1000 * to }, axis, { width, height: 80 }, { wide: 2, high: 3 }),
	);

describe("the picture of cells", () => {
	it("has each pixel in the colour of the cell that lies there", () => {
		fc.assert(
			fc.property(tables, fc.integer({ min: 8, max: 120 }), (table, height) => {
				const cells = cellsOf(table, 0, COLUMNS, 400);
				const pixels = pixelsOf(cells, axis, height, (place, count) => 1 + place + 1000 * count);
				expect(pixels.length).toBe(cells.columns * height);
				const expected = new Uint32Array(pixels.length);
				for (const [row, [top, bottom]] of pixelRows(cells.edges, axis, height).entries())
					for (let line = top; line < bottom; line++)
						for (let column = 0; column < cells.columns; column++) {
							const place = row * cells.columns + column;
							const count = cells.counts[place] ?? 0;
							if (count > 0) expected[line * cells.columns + column] = 1 + place + 1000 * count;
						}
				expect(pixels).toEqual(expected);
			}),
			{ numRuns: 15 },
		);
	});

	it("has rows that follow each other from the bottom to the top without gaps", () => {
		fc.assert(
			fc.property(fc.integer({ min: 8, max: 2000 }), fc.boolean(), (height, log) => {
				const made: Axis = log ? { low: 10, high: 80, scale: "log" } : axis;
				const rows = pixelRows(log ? bounds.slice(1) : bounds, made, height);
				expect(rows[0]?.[1]).toBe(height);
				expect(rows.at(-1)?.[0]).toBe(0);
				for (let i = 1; i < rows.length; i++) expect(rows[i]?.[1]).toBe(rows[i - 1]?.[0]);
			}),
		);
	});

	it("is the same part of a wider one, so that a graph can be dragged over it", () => {
		fc.assert(
			fc.property(tables, fc.integer({ min: 0, max: 20 }), (table, from) => {
				// as many pixels a column in both
				const part = cellsOf(table, from, from + 20, 60);
				const all = cellsOf(table, 0, COLUMNS, 120);
				expect(part.joined).toBe(all.joined);
				const shift = (part.first - all.first) / all.joined;
				const rows = part.edges.slice(1).map((_, row) => row);
				const cut = rows.flatMap((row) => {
					const start = row * all.columns + shift;
					return [...all.counts.slice(start, start + part.columns)];
				});
				expect([...part.counts]).toEqual(cut);
			}),
		);
	});
});

describe("maps of keys", () => {
	it("add up to the map of all, cell by cell", () => {
		fc.assert(
			fc.property(tables, tables, (one, other) => {
				const shape = geometry(group, { from: 0, to: 40_000 }, axis, { width: 120, height: 80 }, { wide: 2, high: 3 });
				const all = fill(sparse([...one, ...other]), shape);
				const sum = plus([fill(sparse(one), shape), fill(sparse(other), shape)], shape);
				expect(sum.counts).toEqual(all.counts);
				expect([sum.above, sum.below, sum.total]).toEqual([all.above, all.below, all.total]);
				expect(plus([], shape).counts.every((count) => count === 0)).toBe(true);
			}),
		);
	});
});
