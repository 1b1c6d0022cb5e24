// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FEW, intervalOf, MANY, SOME, snapped } from "../src/api/columns";
import { SECOND } from "../src/api/worksheet";
import {
	around,
	lengthOf,
	lengthWords,
	middleOf,
	momentWords,
	moved,
	nextMultiple,
	shiftWords,
	spanWords,
	zoomed,
} from "../src/worksheet/times";

const START = 1_700_000_000 * SECOND;
const spans = fc
	.tuple(fc.integer({ min: 0, max: 3e8 }), fc.integer({ min: 1, max: 3e7 }))
	.map(([from, length]) => ({ from: START + from * SECOND, until: START + (from + length) * SECOND }));

describe("columns", () => {
	it("are at most as many as a screen has, and at least a few", () => {
		fc.assert(
			fc.property(fc.integer({ min: 1, max: 10 * 366 * 86_400 }), (seconds) => {
				const length = seconds * SECOND;
				const columns = length / intervalOf({ from: START, until: START + length });
				expect(columns).toBeLessThanOrEqual(3600);
				expect(columns).toBeGreaterThanOrEqual(seconds < 60 ? 1 : 60);
			}),
		);
	});
	it("are a second from a minute to an hour, and a minute for a day", () => {
		for (const [seconds, interval] of [
			[60, 1],
			[3600, 1],
			[7200, 2],
			[86_400, 60],
			[7 * 86_400, 300],
			[30 * 86_400, 900],
		])
			expect(intervalOf({ from: START, until: START + (seconds as number) * SECOND })).toBe(
				(interval as number) * SECOND,
			);
		expect(intervalOf({ from: 0, until: 6e8 })).toBe(1e6);
		expect(intervalOf({ from: 0, until: 1 })).toBe(1);
	});
	it("are at most 3 pixels wide where there are enough I/Os, and never longer than without", () => {
		fc.assert(
			fc.property(
				fc.integer({ min: 1, max: 40 * 86_400 }),
				fc.integer({ min: 200, max: 3400 }),
				fc.double({ min: 0.001, max: 1e6, noNaN: true }),
				(seconds, pixels, perSecond) => {
					const span = { from: START, until: START + seconds * SECOND };
					const interval = intervalOf(span, { pixels, perSecond, enough: FEW });
					const columns = (seconds * SECOND) / interval;
					expect(interval).toBeLessThanOrEqual(intervalOf(span));
					expect(columns).toBeLessThanOrEqual(4000);
					if (interval < intervalOf(span)) {
						expect((perSecond * interval) / SECOND > FEW / 3 || pixels / columns > 1).toBe(true);
						if ((perSecond * interval) / (2.5 * SECOND) >= FEW) expect(pixels / columns).toBeLessThanOrEqual(3.001);
					}
				},
			),
		);
		const minutes = { from: START, until: START + 154 * SECOND };
		expect(intervalOf(minutes, { pixels: 990, perSecond: 4800, enough: FEW })).toBe(2e8);
		// a number needs more of them than a cell of a map
		expect(intervalOf(minutes, { pixels: 990, perSecond: 200, enough: SOME })).toBe(5e8);
		expect(intervalOf(minutes, { pixels: 990, perSecond: 20, enough: SOME })).toBe(intervalOf(minutes));
		expect(intervalOf(minutes, { pixels: 990, perSecond: 50, enough: FEW })).toBe(5e8);
		expect(intervalOf(minutes, { pixels: 990, perSecond: 2, enough: FEW })).toBe(SECOND);
	});
	it("of percentiles hold many I/Os", () => {
		const minutes = { from: START, until: START + 154 * SECOND };
		expect(intervalOf(minutes, { pixels: 990, perSecond: 4800, enough: MANY })).toBe(5e8);
		expect(intervalOf(minutes, { pixels: 990, perSecond: 600, enough: MANY })).toBe(2 * SECOND);
		expect(intervalOf(minutes, { pixels: 990, perSecond: 1, enough: MANY })).toBe(5 * SECOND);
	});
	it("hold the whole span", () => {
		fc.assert(
			fc.property(spans, (span) => {
				const interval = intervalOf(span);
				const { from, until } = snapped(span, interval);
				expect(from % BigInt(interval)).toBe(0n);
				expect(until % BigInt(interval)).toBe(0n);
				expect(from <= BigInt(span.from)).toBe(true);
				expect(until >= BigInt(span.until)).toBe(true);
				expect(Number(until - from)).toBeLessThan(lengthOf(span) + 2 * interval);
			}),
		);
	});
});

describe("time", () => {
	it("comes closer and goes farther around a moment", () => {
		fc.assert(
			fc.property(spans, fc.double({ min: 0, max: 1, noNaN: true }), (span, share) => {
				const about = span.from + share * lengthOf(span);
				const back = zoomed(zoomed(span, 0.5, about), 2, about);
				expect(Math.abs(back.from - span.from)).toBeLessThan(lengthOf(span) * 1e-3 + 1e4);
				const near = zoomed(span, 0.5, about);
				expect(near.from).toBeLessThanOrEqual(about + 1e4);
				expect(near.until).toBeGreaterThanOrEqual(about - 1e4);
			}),
		);
	});
	it("moves no farther than half beyond what was recorded", () => {
		const whole = { from: START, until: START + 100 * SECOND };
		const span = { from: START, until: START + 10 * SECOND };
		expect(moved(span, whole, 0.5).from).toBe(START + 5 * SECOND);
		expect(moved(span, whole, -3).from).toBe(START - 5 * SECOND);
		expect(moved(span, whole, 99).until).toBe(whole.until + 5 * SECOND);
	});
	it("is shown in multiples of a unit", () => {
		expect(nextMultiple(90 * SECOND, 60)).toBe(1);
		expect(nextMultiple(60 * SECOND, 60)).toBe(2);
		expect(nextMultiple(180 * SECOND, 60)).toBe(4);
		expect(nextMultiple(3600 * SECOND, 60)).toBe(1);
		expect(nextMultiple(90 * 86_400 * SECOND, 30 * 86_400)).toBe(4);
		expect(middleOf(around(START, 60 * SECOND))).toBe(START);
	});
	it("is told in words", () => {
		expect(lengthWords(60 * SECOND)).toBe("1 minute");
		expect(lengthWords(7200 * SECOND)).toBe("2 hours");
		expect(lengthWords(90 * SECOND)).toBe("90 seconds");
		expect(lengthWords(2.5e6)).toBe("2.5 ms");
		expect(lengthWords(1092 * SECOND)).toBe("18 minutes 12 seconds");
		expect(lengthWords(599.8 * SECOND)).toBe("10 minutes");
		expect(lengthWords(90_123 * SECOND)).toBe("1 day 1 hour");
		expect(lengthWords(7199 * SECOND)).toBe("2 hours");
		expect(lengthWords(90 * 60 * SECOND)).toBe("90 minutes");
		expect(lengthWords(29_871 * 60 * SECOND)).toBe("20 days 18 hours");
		expect([76.92 * SECOND, -60 * SECOND, 0].map(shiftWords)).toEqual([
			"76.92 seconds earlier",
			"1 minute later",
			"the same time",
		]);
		expect(lengthWords(20 * 86_400 * SECOND)).toBe("20 days");
		expect(lengthWords(121.4 * SECOND)).toBe("2 minutes 1 second");
		expect(momentWords(START)).toBe("2023-11-14 22:13:20");
		expect(momentWords(START + 5e6, 1e6)).toBe("2023-11-14 22:13:20.005");
		expect(momentWords(12.5 * SECOND, 1e8)).toBe("12.500 s");
		expect(spanWords({ from: START, until: START + 600 * SECOND })).toBe("2023-11-14 22:13:20 – 22:23:20 UTC");
		expect(spanWords({ from: 5 * SECOND, until: 605 * SECOND }, 5 * SECOND)).toBe("0 s – 600 s");
	});
});
