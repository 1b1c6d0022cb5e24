// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import vectors from "../../tests/vectors/heatmap.json";
import { stepOf } from "../src/canvas/bitmap";
import { countInside, fill, fullest, geometry, minus, snapped, wholeAxis } from "../src/canvas/cells";
import { legendText } from "../src/canvas/legend";
import { densitiesOf, joinedRows, placeOf } from "../src/canvas/rows";
import { countAt, type Kind, levelOf, scaleOf } from "../src/canvas/scale";
import {
	type Axis,
	areaOf,
	moveSpan,
	toPosition,
	toValue,
	xPixel,
	xTime,
	yPixel,
	yValue,
	zoomAxis,
	zoomSpan,
} from "../src/canvas/spaces";
import { linearTicks, logTicks, quantity, type Unit } from "../src/canvas/ticks";
import type { HeatMapCounts, HeatMapGroup } from "../src/generated/maps";
import { who } from "../src/heatmap/attribution";

describe("what Python does as well", () => {
	it.each(vectors.quantity as { value: number; unit: Unit; text: string }[])("writes $value $unit", (each) => {
		expect(quantity(each.value, each.unit)).toBe(each.text);
	});

	type Ticks = { low: number; high: number; most: number; unit: Unit; at?: number; ticks: [number, string][] };
	it.each(vectors.linear_ticks as unknown as Ticks[])(
		"marks $low to $high $unit",
		({ low, high, most, unit, ticks }) => {
			expect(linearTicks(low, high, most, unit).map((tick) => [tick.value, tick.label])).toEqual(ticks);
		},
	);
	it.each(vectors.log_ticks as unknown as Ticks[])(
		"marks log $low to $high $unit",
		({ low, high, most, unit, at, ticks }) => {
			expect(logTicks(low, high, most, unit, at).map((tick) => [tick.value, tick.label])).toEqual(ticks);
		},
	);

	type Scaled = { cells: number[]; kind: Kind; counts: number[]; levels: number[] };
	it.each(vectors.scale as Scaled[])("scales $cells by $kind", ({ cells, kind, counts, levels }) => {
		const scale = scaleOf([cells], kind);
		expect(scale.counts).toEqual(counts);
		for (const [i, level] of levels.entries()) expect(scale.levels[i]).toBeCloseTo(level, 12);
	});

	type Rows = { edges: number[]; least: number; starts: number[] };
	it.each(vectors.joined_rows as Rows[])("joins $edges", ({ edges, least, starts }) => {
		expect(joinedRows(edges, least)).toEqual(starts);
	});

	it.each(vectors.densities)("weighs rows between $edges", ({ edges, densities }) => {
		expect(densitiesOf(edges)).toEqual(densities);
	});
});

const axes = fc
	.record({
		low: fc.double({ min: 0.5, max: 1e9, noNaN: true }),
		factor: fc.double({ min: 1.01, max: 1e6, noNaN: true }),
		scale: fc.constantFrom("log" as const, "linear" as const),
	})
	.map(({ low, factor, scale }): Axis => ({ low, high: low * factor, scale }));
const boxes = fc.record({
	left: fc.integer({ min: 0, max: 200 }),
	top: fc.integer({ min: 0, max: 200 }),
	width: fc.integer({ min: 1, max: 3000 }),
	height: fc.integer({ min: 1, max: 2000 }),
});
const spans = fc
	.record({
		from: fc.double({ min: 0, max: 1e12, noNaN: true }),
		length: fc.double({ min: 1, max: 1e12, noNaN: true }),
	})
	.map(({ from, length }) => ({ from, to: from + length }));
const shares = fc.double({ min: 0, max: 1, noNaN: true });
const CELL = { wide: 2, high: 3 };

describe("the spaces of a map", () => {
	it("lead there and back", () => {
		fc.assert(
			fc.property(axes, boxes, spans, shares, (axis, box, span, share) => {
				const value = toValue(axis, share);
				expect(toPosition(axis, value)).toBeCloseTo(share, 6);
				expect(yValue(box, axis, yPixel(box, axis, value)) / value).toBeCloseTo(1, 6);
				const time = span.from + share * (span.to - span.from);
				expect((xTime(box, span, xPixel(box, span, time)) - time) / (span.to - span.from)).toBeCloseTo(0, 6);
			}),
		);
	});

	it("rise with the value, and from the bottom of the map to its top", () => {
		fc.assert(
			fc.property(axes, boxes, (axis, box) => {
				expect(yPixel(box, axis, axis.low)).toBeCloseTo(box.top + box.height, 6);
				expect(yPixel(box, axis, axis.high)).toBeCloseTo(box.top, 6);
				expect(toPosition(axis, axis.low * 0.9)).toBeLessThan(0);
				expect(toPosition(axis, axis.high * 1.1)).toBeGreaterThan(1);
			}),
		);
	});

	it("zoom and move inside the whole, keeping what is under the pointer", () => {
		fc.assert(
			fc.property(spans, shares, fc.double({ min: 0.1, max: 10, noNaN: true }), (whole, share, factor) => {
				const about = whole.from + share * (whole.to - whole.from);
				const closer = zoomSpan(whole, whole, about, factor, 1e-3);
				const slack = 1e-6 * (whole.to - whole.from);
				expect(closer.from).toBeGreaterThanOrEqual(whole.from - slack);
				expect(closer.to).toBeLessThanOrEqual(whole.to + slack);
				if (factor < 1) {
					const box = { left: 0, top: 0, width: 1000, height: 1 };
					// a double holds times far from zero only so finely
					const resolution = (8 * Number.EPSILON * closer.to) / (closer.to - closer.from);
					const moved = Math.abs(xPixel(box, closer, about) - xPixel(box, whole, about));
					expect(moved).toBeLessThan(0.005 + resolution * box.width);
				}
				const moved = moveSpan(closer, whole, whole.to - whole.from);
				expect(Math.abs(moved.to - whole.to)).toBeLessThan(slack);
				expect(Math.abs(moved.to - moved.from - (closer.to - closer.from))).toBeLessThan(slack);
			}),
		);
	});

	it("zoom y inside the whole axis", () => {
		fc.assert(
			fc.property(axes, shares, fc.double({ min: 0.1, max: 10, noNaN: true }), (whole, share, factor) => {
				const about = toValue(whole, share);
				const shown = zoomAxis(whole, whole, about, factor);
				expect(shown.low).toBeGreaterThanOrEqual(whole.low);
				expect(shown.high).toBeLessThanOrEqual(whole.high);
				expect(shown.high).toBeGreaterThan(shown.low);
			}),
		);
	});

	it("turn a dragged rectangle into the same part whichever corner came first", () => {
		const corner = fc.tuple(fc.integer({ min: -50, max: 3300 }), fc.integer({ min: -50, max: 2300 }));
		fc.assert(
			fc.property(axes, boxes, spans, corner, corner, (axis, box, span, one, two) => {
				const area = areaOf(box, span, axis, one, two);
				expect(areaOf(box, span, axis, two, one)).toEqual(area);
				expect(area.from).toBeLessThanOrEqual(area.to);
				expect(area.low).toBeLessThanOrEqual(area.high * (1 + 1e-9));
			}),
		);
	});
});

/** A map from cells (column, bucket, count) on buckets of ten. */
function group(cells: [number, number, number][], columns: number, buckets: number): HeatMapGroup {
	const sum = new Map<string, number>();
	for (const [column, bucket, count] of cells) {
		const key = `${column} ${bucket}`;
		sum.set(key, (sum.get(key) ?? 0) + count);
	}
	const sorted = [...sum]
		.map(([key, count]) => [...key.split(" ").map(Number), count] as [number, number, number])
		.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
	const map: HeatMapCounts = {
		label: "map",
		begins: "",
		columns,
		events: 0,
		cells: {
			starts: Array.from({ length: columns + 1 }, (_, c) => sorted.filter(([column]) => column < c).length),
			rows: sorted.map(([, bucket]) => bucket),
			counts: sorted.map(([, , count]) => count),
		},
		gaps: [],
		unrecorded: [],
		lost: [],
		overlays: [],
		dimensions: [],
		notes: [],
	};
	return {
		y: "latency",
		title: "Latency",
		unit: "ns",
		weight: "count",
		interval_ns: 1000,
		columns,
		bounds: Array.from({ length: buckets + 1 }, (_, i) => 10 * i),
		y_scale: "linear",
		color: "rank",
		low: 0,
		high: 10 * buckets,
		least: 10,
		crops: [[0, 10 * buckets]],
		lines: [],
		show_lines: false,
		difference: false,
		maps: [map],
	};
}

const maps = fc
	.record({ columns: fc.integer({ min: 1, max: 40 }), buckets: fc.integer({ min: 1, max: 40 }) })
	.chain(({ columns, buckets }) =>
		fc
			.array(
				fc.tuple(
					fc.integer({ min: 0, max: columns - 1 }),
					fc.integer({ min: 0, max: buckets - 1 }),
					fc.integer({ min: 1, max: 1000 }),
				),
				{ maxLength: 200 },
			)
			.map((cells) => ({ cells, group: group(cells, columns, buckets) })),
	);
const total = (cells: [number, number, number][]) => cells.reduce((sum, [, , count]) => sum + count, 0);

describe("cells", () => {
	const all = (shown: HeatMapGroup) => ({ from: 0, to: shown.columns * shown.interval_ns });
	const size = fc.record({ width: fc.integer({ min: 1, max: 90 }), height: fc.integer({ min: 1, max: 90 }) });

	it("hold every count once, whatever the size and the part of y", () => {
		fc.assert(
			fc.property(maps, size, shares, shares, (made, plot, one, two) => {
				const shown = made.group;
				const [low, high] = [one, two].sort((a, b) => a - b).map((share) => share * shown.high) as [number, number];
				const axis: Axis = { low, high: Math.max(high, low + 1), scale: "linear" };
				const data = shown.maps[0]?.cells ?? { starts: [], rows: [], counts: [] };
				const cells = fill(data, geometry(shown, all(shown), axis, plot, { wide: 2, high: 3 }));
				const drawn = cells.counts.reduce((sum, count) => sum + count, 0);
				expect(drawn + cells.above + cells.below).toBe(total(made.cells));
				expect(cells.total).toBe(total(made.cells));
			}),
		);
	});

	it("say in a marked part what they show there", () => {
		fc.assert(
			fc.property(maps, size, shares, shares, shares, shares, (made, plot, a, b, c, d) => {
				const shown = made.group;
				const axis: Axis = { low: 0, high: shown.high, scale: "linear" };
				const shape = geometry(shown, all(shown), axis, plot, { wide: 2, high: 3 });
				const data = shown.maps[0]?.cells ?? { starts: [], rows: [], counts: [] };
				const cells = fill(data, shape);
				const span = all(shown).to;
				const [from, to] = [a, b].sort((x, y) => x - y).map((share) => share * span) as [number, number];
				const [low, high] = [c, d].sort((x, y) => x - y).map((share) => share * shown.high) as [number, number];
				const area = snapped({ from, to, low, high }, cells, shown.interval_ns);
				let seen = 0;
				for (let row = 0; row + 1 < cells.edges.length; row++) {
					for (let column = 0; column < cells.columns; column++) {
						const left = (cells.first + column * cells.joined) * shown.interval_ns;
						const inTime = left >= area.from && left < area.to;
						const inside = (cells.edges[row] ?? 0) >= area.low && (cells.edges[row + 1] ?? 0) <= area.high;
						if (inTime && inside) seen += cells.counts[row * cells.columns + column] ?? 0;
					}
				}
				expect(countInside(data, area, shown)).toBe(seen);
			}),
		);
	});

	it("know the row that holds most, whatever stands in which", () => {
		const made = group(
			[
				[0, 1, 5],
				[1, 4, 3],
				[2, 4, 3],
				[3, 7, 5],
			],
			4,
			9,
		);
		const shape = geometry(made, all(made), { low: 0, high: 90, scale: "linear" }, { width: 80, height: 90 }, CELL);
		const cells = fill(made.maps[0]?.cells ?? { starts: [], rows: [], counts: [] }, shape);
		expect(fullest([cells])).toBe(49);
		expect(fullest([cells, { ...cells, counts: cells.counts.map((_, i) => (i === cells.columns ? -9 : 0)) }])).toBe(19);
		expect([fullest([]), fullest([{ ...cells, edges: [0, 1], counts: new Float64Array(4) }])]).toEqual([1, 1]);
	});

	it("differ by nothing from themselves", () => {
		fc.assert(
			fc.property(maps, (made) => {
				const axis: Axis = { low: 0, high: made.group.high, scale: "linear" };
				const shape = geometry(made.group, all(made.group), axis, { width: 50, height: 50 }, { wide: 2, high: 3 });
				const cells = fill(made.group.maps[0]?.cells ?? { starts: [], rows: [], counts: [] }, shape);
				expect(minus(cells, cells).counts.every((count) => count === 0)).toBe(true);
			}),
		);
	});

	it("join columns by powers of two where there is less room, starting at whole cells", () => {
		const wide = group([[0, 0, 1]], 1000, 4);
		const axis: Axis = { low: 0, high: 40, scale: "linear" };
		const shape = geometry(
			wide,
			{ from: 130_500, to: 900_000 },
			axis,
			{ width: 100, height: 40 },
			{ wide: 2, high: 3 },
		);
		expect(shape.joined).toBe(16);
		expect(shape.first).toBe(128);
	});
});

describe("colour", () => {
	it("never paints zero, and grows with the count", () => {
		fc.assert(
			fc.property(
				fc.array(fc.integer({ min: -1e6, max: 1e6 }), { maxLength: 100 }),
				fc.constantFrom<Kind>("rank", "log", "linear"),
				(cells, kind) => {
					const scale = scaleOf([cells], kind);
					expect(levelOf(scale, 0)).toBeNaN();
					expect(stepOf(scale, 0, false)).toBe(-1);
					const levels = scale.counts.map((count) => levelOf(scale, count));
					for (const [i, level] of levels.entries()) {
						expect(level).toBeGreaterThanOrEqual(i === 0 ? 0 : (levels[i - 1] ?? 0));
						expect(level).toBeLessThanOrEqual(1);
						expect(countAt(scale, level)).toBeCloseTo(scale.counts[i] ?? 0, 3);
					}
				},
			),
		);
	});

	it("keeps its levels for counts it has not seen", () => {
		const scale = scaleOf([[1, 10, 100]], "log");
		expect(levelOf(scale, 1000)).toBe(1);
		expect(levelOf(scale, 10)).toBeCloseTo(0.5);
	});

	it("tells fewer from more", () => {
		const scale = scaleOf([[-4, 4, 1]], "linear");
		expect([stepOf(scale, -4, true), stepOf(scale, 4, true)]).toEqual([0, 511]);
	});
});

describe("who is this", () => {
	it("compares the marked part with the rest", () => {
		const made = group(
			[
				[0, 0, 90],
				[1, 3, 10],
			],
			2,
			4,
		);
		const [map] = made.maps;
		if (!map) throw new Error("a group has a map");
		const part = (cells: [number, number, number][]) => group(cells, 2, 4).maps[0]?.cells ?? map.cells;
		map.dimensions = [
			{
				name: "op",
				parts: [
					{
						name: "read",
						cells: part([
							[0, 0, 90],
							[1, 3, 2],
						]),
					},
					{ name: "write", cells: part([[1, 3, 8]]) },
				],
			},
		];
		const found = who(map, made, { from: 1000, to: 2000, low: 30, high: 40 });
		expect([found.inside, found.total]).toEqual([10, 100]);
		expect(found.dimensions[0]?.shares).toEqual([
			{ name: "read", count: 2, inside: 0.2, outside: 1 },
			{ name: "write", count: 8, inside: 0.8, outside: 0 },
		]);
	});
});

it("finds places in ascending lists", () => {
	expect([placeOf([1, 3, 5], 0), placeOf([1, 3, 5], 3), placeOf([1, 3, 5], 9)]).toEqual([-1, 1, 2]);
});

it("a whole axis begins where its scale can", () => {
	const made = group([[0, 2, 1]], 1, 4);
	expect(wholeAxis(made, "linear")).toEqual({ low: 0, high: 40, scale: "linear" });
	expect(wholeAxis(made, "log")).toEqual({ low: 10, high: 40, scale: "log" });
});

it("the legend writes counts in groups, as the headings do", () => {
	const scale = scaleOf([[12_345]], "linear");
	expect([legendText(scale, 1, false, ""), legendText(scale, 1, true, "")]).toEqual(["12 345", "+12 345"]);
	expect(legendText(scaleOf([[1.25]], "linear"), -1, true, "")).toBe("-1.25");
	expect(legendText(scaleOf([[2 ** 20]], "linear"), 1, false, "B")).toBe("1 MiB");
});
