// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { momentOf, placeAt, spanBetween, subSecondMap, valueAt } from "../src/canvas/subsecond";
import { secondsOf } from "../src/worksheet/graph/sub-second";

const S = 1e9;
const STEP = 0.02 * S;

describe("a map of offsets within the second", () => {
	const values = Array.from({ length: 120 }, (_, i) => i);
	// an answer has I/Os per second: 50 for one in 20 ms
	const rates = values.map((value) => value * 50);
	const map = subSecondMap({ t0_ns: 7 * S + 10 * STEP, interval_ns: STEP, values: rates, unit: "1/s" });

	it("counts: 52 I/Os of a second are 52 in the sum of its cells, and bytes are bytes", () => {
		const counts = [40, 0, 12];
		const seconds = counts.map((count) => count / 0.02);
		const ios = subSecondMap({ t0_ns: 0, interval_ns: STEP, values: seconds, unit: "1/s" });
		expect(ios.values.slice(0, 3)).toEqual(counts);
		expect([ios.unit, ios.scale.counts.at(-1)]).toEqual(["", 40]);
		const bytes = subSecondMap({ t0_ns: 0, interval_ns: STEP, values: [4096 / 0.02, null], unit: "B/s" });
		expect([bytes.unit, bytes.values.slice(0, 2)]).toEqual(["B", [4096, null]]);
	});

	it("has each value once, in its second and row", () => {
		expect([map.first, map.seconds, map.rows]).toEqual([7 * S, 3, 50]);
		expect(valueAt(map, { second: 0, row: 9 })).toBeNull();
		expect(valueAt(map, { second: 0, row: 10 })).toBe(0);
		expect(valueAt(map, { second: 1, row: 0 })).toBe(40);
		expect(valueAt(map, { second: 2, row: 29 })).toBe(119);
		expect(valueAt(map, { second: 2, row: 30 })).toBeNull();
		expect(map.values.filter((value) => value !== null)).toEqual(values);
	});

	it("chooses the time from the first cell to the end of the last, in either order", () => {
		const [one, other] = [
			{ second: 0, row: 45 },
			{ second: 1, row: 5 },
		];
		expect(momentOf(map, one)).toBe(7 * S + 45 * STEP);
		const span = { from: 7 * S + 45 * STEP, until: 8 * S + 6 * STEP };
		expect(spanBetween(map, one, other)).toEqual(span);
		expect(spanBetween(map, other, one)).toEqual(span);
		expect(spanBetween(map, one, one)).toEqual({ from: 7 * S + 45 * STEP, until: 7 * S + 46 * STEP });
	});

	it("finds cells by pixels, offset 0 at the bottom", () => {
		const box = { left: 10, top: 5, width: 300, height: 100 };
		expect(placeAt(map, box, [10, 104])).toEqual({ second: 0, row: 0 });
		expect(placeAt(map, box, [309, 6])).toEqual({ second: 2, row: 49 });
		for (const point of [
			[9, 50],
			[310, 50],
			[50, 4],
			[50, 106],
		] as const)
			expect(placeAt(map, box, point)).toBeNull();
	});

	it("is of whole seconds, the latest hour at most", () => {
		expect(secondsOf({ from: 1.5 * S, until: 3.1 * S })).toEqual({ from: S, until: 4 * S });
		expect(secondsOf({ from: 0, until: 9000 * S })).toEqual({ from: 5400 * S, until: 9000 * S });
	});
});
