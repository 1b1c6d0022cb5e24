import { describe, expect, it } from "vitest";
import type { SeriesAnswer, StackAnswer } from "../src/generated/api";
import { address } from "../src/views/live/feed";
import { amount, rate } from "../src/views/live/graph";
import { layersOf, runs, stacked } from "../src/views/live/lines";
import { breakdownOf, narrowed } from "../src/views/live/state";

const common = {
	schema: 1 as const,
	t0_ns: 0,
	interval_ns: 1e9,
	unit: "1/s",
	source: "block",
	first_ns: 0,
	until_ns: 3e9,
	covered_ns: 3e9,
	total: 0,
	mean: 0,
	notes: [],
	lost_by_column: [],
};

describe("names", () => {
	it("are narrowed to a value, whatever is in it", () => {
		expect(narrowed("io.ops[op=write][file]", "file", 'a"b\\c]')).toBe('io.ops[op=write][file="a\\"b\\\\c]"]');
		expect(narrowed("io.bytes[device]", "device", "sda")).toBe('io.bytes[device="sda"]');
	});
	it("end with their breakdown", () => {
		expect(breakdownOf("io.ops[op=write][latency]")).toBe("latency");
		expect(breakdownOf("io.ops[op=write]")).toBe("");
		expect(breakdownOf("io.ops")).toBe("");
	});
	it("are encoded in addresses, repeated ones too", () => {
		expect(address("stream", { statistic: ["io.ops[op]", "a&b"], seconds: 60 })).toBe(
			"/api/v1/stream?statistic=io.ops%5Bop%5D&statistic=a%26b&seconds=60",
		);
	});
});

describe("values", () => {
	it("have their unit", () => {
		expect(rate(2048, "B/s")).toBe("2 KiB/s");
		expect(rate(12.5, "1/s")).toBe("12.5/s");
		expect(rate(0.254, "1")).toBe("25.4 %");
		expect(rate(2048, "B")).toBe("2 KiB");
		expect(rate(null, "1/s")).toBe("nothing recorded");
		expect(amount(12345, "1/s")).toBe("12 345");
		expect(amount(0, "1")).toBe("");
	});
	it("stand on each other, and not where nothing was recorded", () => {
		const answer: StackAnswer = {
			...common,
			kind: "stack",
			statistic: "io.ops[op]",
			keys: [
				{ key: "read", total: 6, mean: 2, values: [1, null, 5] },
				{ key: "write", total: 3, mean: 1, values: [2, null, 1] },
			],
			others: { keys: 2, total: 4, mean: 1, values: [4, null, 0] },
		};
		const layers = layersOf(answer);
		expect(layers.map((layer) => layer.name)).toEqual(["read", "write", "all others"]);
		expect(stacked(layers)).toEqual([
			[1, null, 5],
			[3, null, 6],
			[7, null, 6],
		]);
	});
	it("of a series are one layer, in runs without gaps", () => {
		const answer: SeriesAnswer = { ...common, kind: "series", statistic: "io.ops", values: [null, 1, 2, null, 0] };
		expect(layersOf(answer)).toHaveLength(1);
		expect(runs(answer.values)).toEqual([
			[1, 3],
			[4, 5],
		]);
	});
});
