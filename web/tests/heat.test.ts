// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fill, geometry } from "../src/canvas/cells";
import { changeOf } from "../src/canvas/changes";
import { axisOf, Heat, type Look, nothingHeld } from "../src/canvas/heat";
import type { HeatMapCounts, HeatMapGroup, SparseCounts } from "../src/generated/maps";

const COLUMNS = 100;
const box = { left: 0, top: 0, width: 400, height: 200 };

/** One I/O in each column, in a bucket that rises by one every ten columns. */
const cells = {
	starts: Array.from({ length: COLUMNS + 1 }, (_, i) => i),
	rows: Array.from({ length: COLUMNS }, (_, i) => Math.floor(i / 10)),
	counts: Array.from({ length: COLUMNS }, () => 1),
} satisfies SparseCounts;
const map: HeatMapCounts = {
	label: "",
	begins: "",
	columns: COLUMNS,
	events: COLUMNS,
	cells,
	gaps: [[3, 5]],
	unrecorded: [[8, 9]],
	lost: [{ kind: "damaged", count: 2, columns: [[7, 2]] }],
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
	blank: [[8, 9]],
	window: [-1, 12],
	about: "io.ops[latency]",
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
		expect(heat.hatched).toEqual([[8000, 9000]]);
		expect(heat.answered).toEqual([-1000, 12_000]);
		expect(heat.idle).toEqual([[3000, 5000]]);
		expect(heat.lost).toEqual(map.lost);
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

	it("marks the size that is most frequent, also where not every octave has room for a mark", () => {
		const sized = {
			...group,
			unit: "B" as const,
			y: "size" as const,
			bounds: Array.from({ length: 21 }, (_, i) => 2 ** i),
		};
		const many = {
			starts: cells.starts,
			rows: cells.starts.slice(1).map((_, i) => (i % 9 ? 13 : 5)),
			counts: cells.counts,
		};
		const axis = { low: 1, high: 2 ** 20 };
		const heat = new Heat(
			{ ...look, group: { ...sized, ...axis, least: 1, crops: [] }, shown: [many], scale: "log" },
			nothingHeld(),
		);
		heat.settle({ from: 0, to: 100_000 }, box);
		expect(heat.ticks(200).map((tick) => tick.label)).toEqual([
			"2 B",
			"16 B",
			"128 B",
			"1 KiB",
			"8 KiB",
			"64 KiB",
			"512 KiB",
		]);
		// on a high screen each power of two has room
		expect(heat.ticks(1700)).toHaveLength(21);
	});

	it("says what is in a cell", () => {
		const heat = new Heat(look, nothingHeld());
		heat.settle({ from: 0, to: 100_000 }, box);
		expect(heat.at(15_500, 12)).toEqual({ row: "10 20", count: "1 1 100" });
		expect(heat.at(15_500, 32)).toEqual({ row: "30 40", count: "0 1 100" });
		expect(heat.at(-5000, 12)).toBe(null);
		expect(heat.at(15_500, 500)).toBe(null);
	});

	it("counts what is above and below as part of its column", () => {
		const twice = { starts: cells.starts.map((start) => 2 * start), rows: cells.rows.flatMap((row) => [row, 9]) };
		const shown = [{ ...twice, counts: twice.rows.map((_, i) => (i % 2 === 0 ? 1 : 3)) }];
		for (const change of [{ crop: 0.05 }, { rows: { low: 0, high: 50 } }]) {
			const heat = new Heat({ ...look, ...change, shown }, nothingHeld());
			heat.settle({ from: 0, to: 100_000 }, box);
			expect(heat.at(15_500, 12)).toEqual({ row: "10 20", count: "1 4 400" });
			const narrow = { ...box, width: 100 };
			heat.settle({ from: 0, to: 100_000 }, narrow);
			const joined = new Heat({ ...look, ...change, shown }, nothingHeld());
			joined.settle({ from: 0, to: 100_000 }, narrow);
			expect(joined.at(15_500, 12)).toEqual({ row: "10 20", count: "2 8 400" });
		}
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

describe("a heat map that is moved in time", () => {
	const at = (start: number, held = nothingHeld(), change: Partial<Look> = {}) =>
		new Heat({ ...look, origin: look.origin + start, ...change }, held);
	/** A span on the recording's clock, as a content has it. */
	const of = (heat: Heat, from: number, length = 100_000) => ({
		from: look.origin + from - heat.origin,
		to: look.origin + from + length - heat.origin,
	});
	const louder = { ...cells, counts: cells.counts.map((_, i) => 1000 + i) };

	it("takes colours and axis from the new answer, not from the one before in the new time", () => {
		const held = nothingHeld();
		const before = at(0, held);
		before.settle(of(before, 0), box);
		for (const by of [300_000, 60_000]) {
			before.settle(of(before, by), box);
			const next = at(by, held, { shown: [louder], group: { ...group, crops: [[0, 50]] } });
			expect(next.settle(of(next, by), box)).toBe(true);
			const fresh = at(by, nothingHeld(), { shown: [louder], group: { ...group, crops: [[0, 50]] } });
			fresh.settle(of(fresh, by), box);
			expect([next.scale, next.axis]).toEqual([fresh.scale, fresh.axis]);
			expect(next.scale.counts.length).toBeGreaterThan(0);
		}
	});

	it("holds nothing of another statistic, another label, other columns, or of an answer in which nothing was", () => {
		const held = nothingHeld();
		const first = at(0, held);
		const span = { from: 0, to: 100_000 };
		first.settle(span, box);
		expect(at(0, held).settle(span, box)).toBe(false);
		expect(at(0, held, { about: "zfs.arc[latency]" }).settle(span, box)).toBe(true);
		expect(at(0, held, { map: { ...map, label: "other" } }).settle(span, box)).toBe(true);
		expect(at(0, held, { group: { ...group, y: "size" } }).settle(span, box)).toBe(true);
		expect(at(0, held, { group: { ...group, columns: 60 } }).settle(span, box)).toBe(true);
		const nothing = { starts: cells.starts.map(() => 0), rows: [], counts: [] };
		at(0, held, { shown: [nothing] }).settle(span, box);
		expect(at(0, held).settle(span, box)).toBe(true);
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
				const change = changeOf({ cells: data, columns: 128, gaps: [] }, shape);
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

	it("leaves out columns that were not compared: those in gaps and beyond the end", () => {
		// one more each second, but nothing is known of columns 3 to 6, of 40 and of those behind the last
		const gaps: [number, number][] = [
			[3, 7],
			[40, 41],
		];
		const known = (column: number) => !gaps.some(([from, past]) => column >= from && column < past);
		const starts = [0];
		for (let column = 0; column < 98; column++) starts.push((starts.at(-1) ?? 0) + Number(known(column)));
		const count = starts.at(-1) ?? 0;
		const answer = { cells: { starts, rows: Array(count).fill(2), values: Array(count).fill(1) }, columns: 98, gaps };
		for (const width of [200, 50, 25, 13]) {
			const shape = geometry(
				{ ...group, columns: 98 },
				{ from: 0, to: 100_000 },
				axisOf(look),
				{ ...box, width },
				{ wide: 2, high: 3 },
			);
			const change = changeOf(answer, shape);
			const values = new Set(change.counts.filter((value) => value !== 0));
			expect([...values].map((value) => Math.round(value * 1e9) / 1e9)).toEqual([1]);
		}
	});
});
