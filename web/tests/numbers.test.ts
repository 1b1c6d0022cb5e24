// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
	ceiling,
	columnsIn,
	layersOf,
	mostOf,
	OTHERS,
	recordedPart,
	runs,
	stacked,
	valuesOf,
	wholeColumns,
} from "../src/canvas/lines";
import { chosenLayers, Numbers } from "../src/canvas/numbers";
import type { SeriesAnswer, StackAnswer } from "../src/generated/api";

const common = {
	schema: 1 as const,
	t0_ns: 5e9,
	interval_ns: 1e9,
	unit: "1/s",
	source: "block",
	first_ns: 5e9,
	until_ns: 8e9,
	covered_ns: 2e9,
	total: 13,
	mean: 6.5,
	notes: [],
	lost_by_column: [[1, 7]] as [number, number][],
	losses: [{ kind: "lost" as const, count: 7, columns: [[1, 7]] as [number, number][] }],
};
const stack: StackAnswer = {
	...common,
	kind: "stack",
	adds_up: true,
	statistic: "io.ops[op]",
	keys: [
		{ key: "read", total: 6, mean: 3, values: [1, null, 5] },
		{ key: "write", total: 3, mean: 1.5, values: [2, null, 1] },
	],
	others: { keys: 2, total: 4, mean: 2, values: [4, null, 0] },
};
const series: SeriesAnswer = { ...common, kind: "series", statistic: "io.ops", values: [null, 1, 2] };
const colour = (key: string) => `#${key}`;

describe("layers", () => {
	it("stand on each other, and not where nothing was recorded", () => {
		const layers = layersOf(stack, colour);
		expect(layers.map((layer) => layer.name)).toEqual(["read", "write", OTHERS]);
		expect(stacked(layers)).toEqual([
			[1, null, 5],
			[3, null, 6],
			[7, null, 6],
		]);
	});

	it("of a series are one", () => {
		expect(layersOf(series, colour).map((layer) => layer.name)).toEqual(["io.ops"]);
	});

	const chosen = (mode: "highlight" | "isolate" | "exclude" | "rainbow", highlights: string[]) => {
		const found = chosenLayers({ answer: stack, highlights, mode, colour, faint: "#eee" });
		return [found.layers.map((each) => each.name), found.behind.map((each) => [each.name, each.colour])];
	};
	it("are those that a mode shows", () => {
		const all = ["read", "write", OTHERS];
		for (const mode of ["highlight", "isolate", "exclude", "rainbow"] as const)
			expect(chosen(mode, [])).toEqual([all, []]);
		expect(chosen("highlight", ["write"])).toEqual([
			["write"],
			[
				["read", "#eee"],
				[OTHERS, "#eee"],
			],
		]);
		expect(chosen("isolate", ["write"])).toEqual([["write"], []]);
		expect(chosen("exclude", ["write"])).toEqual([["read", OTHERS], []]);
		expect(chosen("rainbow", ["write"])).toEqual([all, []]);
		// what was highlighted may be gone from the answer
		expect(chosen("isolate", ["trim"])).toEqual([all, []]);
	});
});

describe("columns", () => {
	const values = fc.array(fc.option(fc.integer({ min: 0, max: 99 })), { maxLength: 60 });

	it("with a value are runs that leave out all others", () => {
		fc.assert(
			fc.property(values, (row) => {
				const inside = new Set(
					runs(row).flatMap(([from, to]) => Array.from({ length: to - from }, (_, i) => from + i)),
				);
				for (const [column, value] of row.entries()) expect(inside.has(column)).toBe(value !== null);
			}),
		);
	});

	it("in a span are those that overlap it", () => {
		fc.assert(
			fc.property(fc.integer({ min: -50, max: 90 }), fc.integer({ min: 1, max: 90 }), (from, length) => {
				const [first, past] = columnsIn({ from, to: from + length }, 7, 9);
				for (let column = 0; column < 9; column++) {
					const overlaps = 7 * column < from + length && 7 * (column + 1) > from;
					expect(column >= first && column < past).toBe(overlaps);
				}
			}),
		);
	});

	it("have a most, and an axis that holds it without moving for every little more", () => {
		fc.assert(
			fc.property(fc.double({ min: 1e-6, max: 1e12, noNaN: true }), (most) => {
				const end = ceiling(most);
				expect(end).toBeGreaterThanOrEqual(most);
				expect(end).toBeLessThan(1.6 * most);
			}),
		);
		expect(ceiling(0)).toBe(1);
		expect(mostOf([[1, null, 3], [9]], 1, 3)).toBe(3);
		expect(mostOf([], 0, 3)).toBe(0);
	});
});

describe("numbers over time", () => {
	const look = {
		stacked: true,
		scale: "linear" as const,
		highlights: [],
		mode: "highlight" as const,
		colour,
		words: String,
		faint: "#eee",
	};

	it("begin where the answer does, and hatch what was not recorded", () => {
		const made = new Numbers({ ...look, answer: stack });
		expect([made.origin, made.interval, made.columns]).toEqual([5e9, 1e9, 3]);
		expect(made.hatched).toEqual([[1e9, 2e9]]);
		expect(made.lost).toEqual([{ kind: "lost", count: 7, columns: [[1, 7]] }]);
		expect(new Numbers({ ...look, answer: series }).hatched).toEqual([[0, 1e9]]);
	});

	it("of a stack in which nobody did anything are answered, as 0", () => {
		const nobody = { ...stack, keys: [], others: null, total: 0, mean: 0 };
		const found = new Numbers({ ...look, answer: nobody });
		expect([found.answered, found.hatched, found.layers]).toEqual([[0, 3e9], [], []]);
		const t0_ns = 1.7e18;
		const cut = { ...nobody, t0_ns, until_ns: t0_ns + 2.5e9 };
		expect(valuesOf(cut)).toEqual([0, 0, 0]);
		expect(valuesOf({ ...cut, until_ns: t0_ns + 3e9 + 256 })).toEqual([0, 0, 0]);
		expect(valuesOf({ ...cut, covered_ns: 0 })).toEqual([null, null, null]);
	});

	it("rescale to what is highlighted", () => {
		const made = (highlights: string[], on: boolean) => {
			const numbers = new Numbers({ ...look, answer: stack, highlights, stacked: on });
			numbers.settle({ from: 0, to: 3e9 });
			return numbers.axis.high;
		};
		expect(made([], true)).toBe(ceiling(7));
		expect(made([], false)).toBe(ceiling(5));
		expect(made(["write"], true)).toBe(ceiling(2));
		const zoomed = new Numbers({ ...look, answer: stack });
		expect(zoomed.settle({ from: 2e9, to: 3e9 })).toBe(true);
		expect(zoomed.settle({ from: 2e9, to: 3e9 })).toBe(false);
		expect(zoomed.axis.high).toBe(ceiling(6));
	});

	it("make no axis for a column that is not complete, and say how much of it was recorded", () => {
		const cut = { ...series, first_ns: 6e9, until_ns: 7.25e9, values: [null, 3, 900] };
		const numbers = new Numbers({ ...look, answer: cut, stacked: false });
		numbers.settle({ from: 0, to: 3e9 });
		expect(numbers.axis.high).toBe(ceiling(3));
		expect(numbers.at(2.1e9, 0)).toMatchObject({ recorded: "250 ms of 1 s" });
		expect(numbers.at(1.5e9, 0)).not.toHaveProperty("recorded");
		// nothing else is shown
		numbers.settle({ from: 2e9, to: 3e9 });
		expect(numbers.axis.high).toBe(ceiling(900));
	});

	it("have whole columns within the recorded part, or all where none is whole", () => {
		const part = (first_ns: number, until_ns: number) => recordedPart({ ...series, first_ns, until_ns });
		expect(wholeColumns(part(5e9, 8e9), 1e9, 3)).toEqual([0, 3]);
		expect(wholeColumns(part(5.5e9, 7.5e9), 1e9, 3)).toEqual([1, 2]);
		expect(wholeColumns(part(5e9 + 200, 8e9 - 200), 1e9, 3)).toEqual([0, 3]);
		expect(wholeColumns(part(6.2e9, 6.8e9), 1e9, 3)).toEqual([0, 3]);
	});

	it("say what is under the pointer", () => {
		const areas = new Numbers({ ...look, answer: stack });
		expect(areas.nearest(0, 2.5)).toBe("write");
		expect(areas.nearest(0, 99)).toBe("");
		const lines = new Numbers({ ...look, answer: stack, stacked: false });
		expect(lines.nearest(2, 4.4)).toBe("read");
		expect(lines.nearest(1, 4)).toBe("");
		const at = lines.at(2.5e9, 4.4) ?? {};
		expect(Object.keys(at)).toEqual(["read", "write"]);
		expect(at).toMatchObject({ read: { words: "5", near: true }, write: { words: "1", near: false } });
		expect(lines.at(9e9, 1)).toBe(null);
	});

	it("name no more than a tooltip holds", () => {
		const keys = Array.from({ length: 30 }, (_, i) => ({ key: `k${i}`, total: i, mean: i, values: [i] }));
		const many = new Numbers({ ...look, answer: { ...stack, keys, others: null } });
		const words = many.at(0, 0) ?? {};
		expect(Object.keys(words)).toHaveLength(9);
		expect(words["…"]).toBe("21 more");
	});
});
