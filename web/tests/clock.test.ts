// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dayOf, timeTicks } from "../src/canvas/clock";

const START = Date.UTC(2026, 10, 21, 5, 54, 8) * 1e6;

describe("marks of time", () => {
	it("are moments of the day, midnight with its date", () => {
		expect(timeTicks(START, 0, 40e9, 6).map((tick) => [tick.value / 1e9, tick.label])).toEqual([
			[2, "05:54:10"],
			[12, "05:54:20"],
			[22, "05:54:30"],
			[32, "05:54:40"],
		]);
		const day = timeTicks(START, 0, 86400e9, 5);
		expect(day.map((tick) => tick.label)).toEqual(["06:00", "12:00", "18:00", "22 Nov"]);
		expect(timeTicks(START, 0, 20 * 86400e9, 4).every((tick) => /^\d+ (Nov|Dec)$/.test(tick.label))).toBe(true);
		expect(timeTicks(START, 0, 0.4e9, 5).map((tick) => tick.label)).toContain("05:54:08.100");
	});

	it("finer than a double tells are counted from the second", () => {
		const labels = timeTicks(START, 0, 1e6, 5).map((tick) => tick.label);
		expect(labels[0]).toMatch(/^\+0/);
		expect(labels.length).toBeGreaterThan(2);
	});

	it("of a clock that does not count from 1970 are time passed since the start", () => {
		const ticks = timeTicks(100e9, 5e9, 15e9, 6, 100e9);
		expect(ticks.map((tick) => tick.label)).toContain("10 s");
		expect(ticks.find((tick) => tick.label === "10 s")?.value).toBe(10e9);
		expect(dayOf(100e9)).toBe("");
		expect(dayOf(START)).toBe("21 Nov");
	});

	it("are few enough, inside, ascending and evenly spaced", () => {
		const lengths = fc.double({ min: 1e7, max: 3e16, noNaN: true });
		fc.assert(
			fc.property(lengths, fc.integer({ min: 2, max: 30 }), fc.boolean(), (length, most, trace) => {
				const ticks = timeTicks(trace ? 0 : START, 0, length, most);
				expect(ticks.length).toBeLessThanOrEqual(most + 1);
				for (const { value } of ticks) {
					expect(value).toBeGreaterThanOrEqual(-1000);
					expect(value).toBeLessThanOrEqual(length + 1000);
				}
				const steps = ticks.slice(1).map((tick, i) => tick.value - (ticks[i]?.value ?? 0));
				for (const step of steps) expect(step / (steps[0] ?? 1)).toBeCloseTo(1, 3);
			}),
		);
	});
});
