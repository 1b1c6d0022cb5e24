// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { askedOf, drawnOf, painterOf, paintersOf } from "../src/api/painters";
import { catalogue, graphOf, recordings, sheet, tick } from "../src/api/worksheet";
import { awaited, inside, joined } from "../src/canvas/frame";
import { flooring, leastOf, valuesOf } from "../src/canvas/lines";
import type { Numbers } from "../src/canvas/numbers";
import type { DrawnMap, PercentilesAnswer, StackAnswer, StatisticFacts } from "../src/generated/api";
import { contentOf, isLayered } from "../src/worksheet/graph/contents";
import { itemsOf } from "../src/worksheet/graph/panel";
import { marks } from "../src/worksheet/marks";
import { unrecorded, unrecordedWords } from "../src/worksheet/recorded";

const fact = (name: string): StatisticFacts => ({
	...{
		name,
		about: "",
		covers: "",
		unit: name.endsWith(".bytes") ? "B/s" : "1/s",
		source: "block",
		sources: [],
		counted: false,
		filters: [],
		available: true,
	},
	why_not: "",
	lacking: [],
	breakdowns: [
		{ field: "op", kind: "stack" },
		{ field: "latency", kind: "heat" },
		{ field: "offset", kind: "heat" },
	],
});

beforeEach(() => {
	catalogue.value = [fact("io.ops"), fact("io.bytes")];
});

describe("a painter", () => {
	const spec = (statistic: string, painter: "" | "line" | "stack" | "heat" | "percentiles" = "") => ({
		...graphOf(statistic, "p"),
		painter,
	});

	it("is chosen by the kind of the statistic, and by whether its values add up", () => {
		expect(paintersOf("io.ops[latency]", "map", false)).toEqual(["heat", "percentiles", "line"]);
		expect(paintersOf("io.ops[offset]", "map", false)).toEqual(["heat", "line"]);
		// percentiles are of I/Os, not of the bytes that they moved
		expect(paintersOf("io.bytes[latency]", "map", false)).toEqual(["heat", "line"]);
		expect(paintersOf("io.ops[op]", "stack", true)).toEqual(["stack", "line"]);
		expect(paintersOf("io.ops[op]", "stack", false)).toEqual(["line", "stack"]);
		expect(paintersOf("io.ops", "series", false)).toEqual([]);
		// a map that is painted as one line is still one
		expect(painterOf(spec("io.ops[latency]", "line"), "series", false)).toBe("line");
	});

	it("that can't be is as if none was chosen", () => {
		expect(painterOf(spec("io.ops[op]", "heat"), "stack", true)).toBe("stack");
		expect(painterOf(spec("io.ops[offset]", "percentiles"), "map", false)).toBe("heat");
		expect(painterOf(spec("io.ops[op]", "percentiles"), "stack", false)).toBe("line");
		expect(painterOf(spec("io.ops"), "series", false)).toBe("");
	});

	it("decides what is asked", () => {
		const asks = (...of: Parameters<typeof spec>) => [askedOf(spec(...of)), drawnOf(spec(...of))];
		expect(asks("io.ops[op=read][latency]")).toEqual(["io.ops[op=read][latency]", "true"]);
		expect(asks("io.ops[op=read][latency]", "line")).toEqual(["io.ops[op=read]", "true"]);
		expect(asks("io.ops[latency]", "percentiles")).toEqual(["io.ops[latency]", "percentiles"]);
		expect(asks("io.ops[offset]", "percentiles")).toEqual(["io.ops[offset]", "true"]);
		expect(asks("io.bytes[latency]", "percentiles")).toEqual(["io.bytes[latency]", "true"]);
		expect(asks("io.bytes[latency]", "line")).toEqual(["io.bytes", "true"]);
		expect(asks("io.ops[op]", "line")).toEqual(["io.ops[op]", "true"]);
	});
});

const percentiles: PercentilesAnswer = {
	...{
		schema: 1,
		kind: "percentiles",
		statistic: "io.ops[latency]",
		t0_ns: 0,
		interval_ns: 1e9,
		y: "latency",
		unit: "ns",
	},
	...{ events: 9, notes: [], lost_by_column: [], losses: [], gaps: [[2, 4]], window: [-4, 6] },
	keys: [
		{ key: "p50", mean: 80_000, values: [70_000, null, null, null, 90_000] },
		{ key: "max", mean: 40e6, values: [300_000, null, null, null, 40e6] },
	],
};

describe("values that are told apart", () => {
	it("are those of a map that is asked for as one", () => {
		const map = { kind: "map" } as DrawnMap;
		const as = (painter: "" | "line" | "percentiles") =>
			isLayered({ ...graphOf("io.ops[latency]", "t"), painter, by: "op", mode: "rainbow" }, map);
		// the map that was shown stays until the line has its answer
		expect([as(""), as("line"), as("percentiles")]).toEqual([true, false, false]);
		expect(isLayered(graphOf("io.ops[latency]", "t"), null)).toBe(false);
	});
});

describe("percentiles", () => {
	const made = (scale: "" | "log" | "linear", answer = percentiles) => {
		const found = contentOf({ ...graphOf("io.ops[latency]", "l"), scale }, answer, null, "#ccc") as Numbers;
		found.settle({ from: 0, to: 5e9 });
		return found;
	};

	it("stand on a logarithmic axis that holds all of them, or on a linear one", () => {
		expect(made("").axis).toEqual({ low: 50_000, high: 50e6, scale: "log" });
		expect(made("linear").axis).toMatchObject({ low: 0, scale: "linear" });
		const labels = (scale: "" | "linear") =>
			made(scale)
				.ticks(200)
				.map((each) => each.label);
		expect(labels("")).toContain("1 ms");
		const high = made("").ticks(900);
		expect(high.map((each) => each.label)).toEqual([
			"50 µs",
			"100 µs",
			"200 µs",
			"500 µs",
			"1 ms",
			"2 ms",
			"5 ms",
			"10 ms",
			"20 ms",
			"50 ms",
		]);
		expect(labels("linear")).toContain("10 ms");
	});

	it("are hatched where nothing was recorded, not where there was no I/O", () => {
		expect(made("").hatched).toEqual([[2e9, 4e9]]);
		expect(made("").at(0, 1)).toMatchObject({
			p50: { words: "70 µs", near: true },
			max: { words: "300 µs", near: false },
		});
		expect(Object.values(made("").at(1e9, 1) ?? {})).toMatchObject([{ words: "no I/O" }]);
	});

	it("are answered for all of the time that was asked for, where that is known", () => {
		expect(made("").answered).toEqual([-4e9, 6e9]);
		const nothing = { ...percentiles, keys: percentiles.keys.map((each) => ({ ...each, values: [] })) };
		expect(made("", nothing).answered).toEqual([-4e9, 6e9]);
		expect(made("", { ...percentiles, window: null }).answered).toBe(null);
	});

	it("are listed as those of all, or of a second", () => {
		const words = (place: Parameters<typeof itemsOf>[2]) =>
			itemsOf("io.ops[latency]", percentiles, place, null, () => "").map((item) => [item.key, item.words]);
		expect(words("all")).toEqual([
			["max", "40 ms"],
			["p50", "80 µs"],
		]);
		// of equal ones the higher percentile stands first
		expect(words(1)).toEqual([
			["max", "no I/O"],
			["p50", "no I/O"],
		]);
	});
});

describe("what does not add up", () => {
	const stack = (adds_up: boolean, mean: number | null): StackAnswer => ({
		...{ schema: 1, kind: "stack", statistic: "io.ops[op]", t0_ns: 0, interval_ns: 1e9, unit: "1/s", source: "" },
		...{
			first_ns: 0,
			until_ns: 2e9,
			covered_ns: 2e9,
			total: 40,
			mean: 40,
			notes: [],
			lost_by_column: [],
			losses: [],
			adds_up,
		},
		keys: [
			{ key: "sda", total: 40, mean: 40, values: [40, 40] },
			{ key: "sda1", total: 30, mean: 30, values: [30, 30] },
		],
		others: { keys: 3, total: 0, mean, values: [mean, mean] },
	});
	const painted = (answer: StackAnswer, painter: "" | "stack" | "line") =>
		contentOf({ ...graphOf("io.ops[op]", "s"), painter }, answer, null, "#ccc") as Numbers;

	it("stands as lines, unless areas are asked for", () => {
		expect(painted(stack(true, 5), "").look.stacked).toBe(true);
		expect(painted(stack(false, null), "").look.stacked).toBe(false);
		expect(painted(stack(false, null), "stack").look.stacked).toBe(true);
		expect(painted(stack(true, 5), "line").look.stacked).toBe(false);
	});

	it("has no sum of the others, neither painted nor listed", () => {
		expect(painted(stack(false, null), "").layers.map((each) => each.name)).toEqual(["sda", "sda1"]);
		expect(painted(stack(true, 5), "").layers).toHaveLength(3);
		const last = (answer: StackAnswer) => {
			const item = itemsOf("io.ops[op]", answer, "all", null, () => "").at(-1);
			return [item?.key, item?.words];
		};
		expect(last(stack(false, null))).toEqual(["3 others", "overlap: no sum"]);
		expect(last(stack(false, 0.2))).toEqual(["3 others on average", "0.2/s"]);
		expect(last(stack(true, 5))).toEqual(["3 others", "5/s"]);
	});
});

describe("time of which nothing is recorded", () => {
	it("is all before and after it, with the gaps", () => {
		sheet.value = { ...sheet.value, recording: "r" };
		const facts = {
			name: "r",
			kind: "recording" as const,
			host: "",
			clock: "trace" as const,
			live: false,
			problem: "",
		};
		recordings.value = [
			{ ...facts, first_ns: 10e9, last_ns: 20e9, events: {}, events_from_ns: null, samples: {}, hosts: {} },
		];
		tick.value = null;
		expect(marks.value.gaps).toEqual([]);
		expect(unrecorded.value).toEqual([
			{ from: Number.NEGATIVE_INFINITY, until: 10e9 },
			{ from: 20e9 + 1, until: Number.POSITIVE_INFINITY },
		]);
		expect(unrecordedWords(5e9)).toContain("begins later");
		expect(unrecordedWords(15e9)).toBe("");
		expect(unrecordedWords(25e9)).toContain("ended before");
		recordings.value = [
			{ ...facts, live: true, first_ns: 10e9, last_ns: 20e9, events: {}, events_from_ns: null, samples: {}, hosts: {} },
		];
		expect(unrecordedWords(25e9)).toContain("yet");
	});

	const spans = fc.array(fc.tuple(fc.integer({ min: -50, max: 50 }), fc.integer({ min: 0, max: 20 })), {
		maxLength: 12,
	});

	it("is one span where several meet, and holds no moment more or less", () => {
		fc.assert(
			fc.property(spans, (given) => {
				const list = given.map(([from, length]): [number, number] => [from, from + length]);
				const found = joined(list);
				const holds = (each: readonly (readonly [number, number])[], at: number) =>
					each.some(([from, to]) => at >= from && at < to);
				for (let at = -60.5; at < 80; at++) expect(holds(found, at)).toBe(holds(list, at));
				for (const [i, [from]] of found.entries()) expect(from).toBeGreaterThan(found[i - 1]?.[1] ?? -Infinity);
			}),
		);
		expect(
			joined([
				[-Infinity, 3],
				[2, 5],
				[9, Infinity],
			]),
		).toEqual([
			[-Infinity, 5],
			[9, Infinity],
		]);
		expect(
			inside(
				[
					[-Infinity, 3],
					[4, 5],
					[9, Infinity],
				],
				{ from: 2, to: 8 },
			),
		).toEqual([
			[2, 3],
			[4, 5],
		]);
	});

	it("is what is not answered yet where it is neither answered nor blank", () => {
		fc.assert(
			fc.property(spans, fc.integer({ min: -50, max: 50 }), fc.integer({ min: 1, max: 60 }), (given, from, length) => {
				const blank = given.map(([first, long]): [number, number] => [first, first + long]);
				const found = awaited([0, 20], { from, to: from + length }, blank);
				const holds = (each: readonly (readonly [number, number])[], at: number) =>
					each.some(([first, to]) => at >= first && at < to);
				for (let at = -60.5; at < 120; at++) {
					const shown = at >= from && at < from + length;
					expect(holds(found, at)).toBe(shown && !holds([...blank, [0, 20]], at));
				}
			}),
		);
	});
});

describe("a logarithmic axis", () => {
	it("begins with a round number below the least value, and not far below", () => {
		fc.assert(
			fc.property(fc.double({ min: 1e-6, max: 1e12, noNaN: true }), (least) => {
				const begin = flooring(least);
				expect(begin).toBeLessThan(least);
				expect(begin).toBeGreaterThan(least / 3);
			}),
		);
		expect(
			leastOf(
				[
					[null, 0, 3],
					[5, 2],
				],
				0,
				2,
			),
		).toBe(2);
		expect(leastOf([[null, 0]], 0, 2)).toBe(0);
		expect(valuesOf({ ...percentiles, keys: [] })).toEqual([]);
	});
});
