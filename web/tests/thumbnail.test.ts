// SPDX-License-Identifier: Apache-2.0

import { describe, expect, it } from "vitest";
import type { Drawable } from "../src/api/question";
import type { StackAnswer } from "../src/generated/api";
import { sharesOf, upperEnd } from "../src/heatmap/thumbnail";

/** A stack of six columns of a second, as /query answers it. */
function stack(first_ns: number, until_ns: number): StackAnswer {
	const times = { t0_ns: 0, interval_ns: 1e9, first_ns, until_ns, covered_ns: until_ns - first_ns };
	const keys = [
		{ key: "read", mean: 1, total: 1, values: [500, 2, 3, 4, 5, 900] },
		{ key: "write", mean: 1, total: 1, values: [0, 1, 1, 1, 1, 0] },
	];
	const rest = { total: 0, mean: 1, notes: [], lost_by_column: [], losses: [], others: null, adds_up: true };
	return { schema: 1, kind: "stack", statistic: "io.ops[op]", unit: "1/s", source: "block", keys, ...times, ...rest };
}

describe("the picture of a statistic", () => {
	it("leaves out seconds that the ends of its time cut: their rate is of a part", () => {
		expect(upperEnd(stack(5e8, 54e8))).toBe("up to 6/s");
	});
	it("has all columns where no end cuts one", () => {
		expect(upperEnd(stack(0, 6e9))).toBe("up to 900/s");
	});
	it("groups the digits of large rates", () => {
		const answer = stack(0, 6e9);
		const keys = [{ key: "read", mean: 1, total: 1, values: [125615, 2, 3, 4, 5, 6] }];
		expect(upperEnd({ ...answer, keys } as Drawable)).toMatch(/^up to 125\s615\/s$/);
	});
	it("names the largest values with their shares of the sum", () => {
		const keys = ["a", "b", "c", "d"].map((key, i) => ({ key, mean: 1, total: [1, 700, 250, 49][i] ?? 0, values: [] }));
		const shares = sharesOf({ keys, total: 1000 });
		expect(shares.map(({ key, share }) => `${key} ${share.replace("\u00a0", " ")}`)).toEqual([
			"b 70 %",
			"c 25 %",
			"d 5 %",
		]);
		expect(sharesOf({ keys: keys.slice(0, 1), total: 1000 })[0]?.share).toContain("< 1");
		expect(sharesOf({ keys, total: 0 })).toEqual([]);
	});
});
