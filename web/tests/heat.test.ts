import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fill, geometry } from "../src/canvas/cells";
import { changeOf } from "../src/canvas/changes";
import { axisOf, Heat, type Look, nothingHeld } from "../src/canvas/heat";
import type { HeatMapCounts, HeatMapGroup, SparseCounts } from "../src/generated/heatmap";

const COLUMNS = 100;
const box = { left: 0, top: 0, width: 400, height: 200 };

/** One I/O in each column, in a bucket that rises by one every ten columns. */
const cells: SparseCounts = {
	starts: Array.from({ length: COLUMNS + 1 }, (_, i) => i),
	rows: Array.from({ length: COLUMNS }, (_, i) => Math.floor(i / 10)),
	counts: Array.from({ length: COLUMNS }, () => 1),
};
const map: HeatMapCounts = {
	label: "",
	begins: "",
	columns: COLUMNS,
	events: COLUMNS,
	cells,
	gaps: [[3, 5]],
	unrecorded: [[8, 9]],
	lost: [[7, 2]],
	overlays: [],
	dimensions: [],
	notes: [],
};
const group: HeatMapGroup = {
	y: "latency",
	title: "",
	unit: "ns",
	weight: "count",
	interval_ns: 1000,
	columns: COLUMNS,
	bounds: Array.from({ length: 11 }, (_, i) => 10 * i),
	y_scale: "linear",
	color: "rank",
	low: 0,
	high: 100,
	least: 10,
	crops: [
		[0, 100],
		[0.05, 80],
	],
	lines: [],
	show_lines: false,
	difference: false,
	maps: [map],
};
const look: Look = {
	group,
	map,
	origin: 5_000_000,
	shown: [cells],
	parts: [],
	kind: "rank",
	scale: "",
	crop: 0,
	rows: null,
	overlays: false,
	words: (count, inColumn, inAll) => ({ count: `${count} ${inColumn} ${inAll}` }),
	row: (low, high) => ({ row: `${low} ${high}` }),
};

describe("a heat map over time", () => {
	it("hatches what is not known, and begins where the answer does", () => {
		const heat = new Heat(look, nothingHeld());
		expect([heat.origin, heat.interval, heat.columns]).toEqual([5_000_000, 1000, 100]);
		expect(heat.hatched).toEqual([
			[3000, 5000],
			[8000, 9000],
		]);
		expect(heat.lost).toEqual([[7, 2]]);
	});

	it("shows the values that are asked for, and counts what lies outside of them", () => {
		expect(axisOf(look)).toEqual({ scale: "linear", low: 0, high: 100 });
		expect(axisOf({ ...look, crop: 0.05 }).high).toBe(80);
		expect(axisOf({ ...look, rows: { low: 20, high: 50 } })).toEqual({ scale: "linear", low: 20, high: 50 });
		expect(axisOf({ ...look, scale: "log", rows: { low: 0, high: 50 } }).low).toBe(0.5);
		const heat = new Heat({ ...look, rows: { low: 20, high: 50 } }, nothingHeld());
		heat.settle({ from: 0, to: 100_000 }, box);
		expect([heat.seen.below, heat.seen.above, heat.seen.total]).toEqual([20, 50, 100]);
	});

	it("says what is in a cell", () => {
		const heat = new Heat(look, nothingHeld());
		heat.settle({ from: 0, to: 100_000 }, box);
		expect(heat.at(15_500, 12)).toEqual({ row: "10 20", count: "1 1 100" });
		expect(heat.at(15_500, 32)).toEqual({ row: "30 40", count: "0 1 100" });
		expect(heat.at(-5000, 12)).toBe(null);
		expect(heat.at(15_500, 500)).toBe(null);
	});

	it("keeps its colours while it moves on, until a quarter of it is new", () => {
		const held = nothingHeld();
		const live = (start: number, kind: Look["kind"] = "rank") =>
			new Heat({ ...look, kind, origin: look.origin + start }, held);
		const span = { from: 0, to: 100_000 };
		expect(live(0).settle(span, box)).toBe(true);
		const { scale, axis } = held;
		expect(live(1000).settle(span, box)).toBe(false);
		expect(live(24_000).settle(span, box)).toBe(false);
		expect([held.scale, held.axis]).toEqual([scale, axis]);
		expect(live(26_000).settle(span, box)).toBe(true);
		expect(live(26_000, "log").settle(span, box)).toBe(true);
		expect(live(26_000, "log").settle({ from: 0, to: 50_000 }, box)).toBe(true);
	});
});

describe("the difference of two maps", () => {
	const signed = fc.array(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: -50, max: 50 })), {
		minLength: COLUMNS,
		maxLength: COLUMNS,
	});

	it("is averaged over the columns that are one cell, so that it stays a rate", () => {
		fc.assert(
			fc.property(signed, fc.constantFrom(400, 100, 50), (made, width) => {
				const shape = geometry(group, { from: 0, to: 100_000 }, axisOf(look), { ...box, width }, { wide: 2, high: 3 });
				const data = { starts: cells.starts, rows: made.map(([row]) => row), values: made.map(([, value]) => value) };
				const change = changeOf(data, shape);
				const plain = fill({ starts: data.starts, rows: data.rows, counts: data.values }, shape);
				const apart = change.counts.map((value, i) => Math.abs(value * shape.joined - (plain.counts[i] ?? 0)));
				expect(Math.max(...apart)).toBeLessThan(1e-9);
				const sum = change.counts.reduce((all, value) => all + value, 0) * shape.joined;
				expect(sum).toBeCloseTo(
					made.reduce((all, [, value]) => all + value, 0),
					6,
				);
			}),
		);
	});
});
