// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { resting } from "../src/worksheet/graph/use-answer";

const words = (from: number, statistic = "io.ops") => ({ recording: "rec", statistic, source: "", from });

beforeEach(() => {
	vi.useFakeTimers();
});
afterEach(() => {
	vi.useRealTimers();
});

describe("what is asked at rest", () => {
	/** Values that come every 16 ms; when each of them was shown, in ms. */
	function shown(count: number, wait: number, most: number): [number, number][] {
		const found: [number, number][] = [];
		const begun = Date.now();
		const rest = resting<ReturnType<typeof words>>(
			(made) => found.push([made.from, Date.now() - begun]),
			wait,
			most,
			words(0),
		);
		for (let frame = 1; frame <= count; frame++) {
			rest.take(words(frame));
			vi.advanceTimersByTime(16);
		}
		vi.advanceTimersByTime(10_000);
		return found;
	}

	it("is the last of what comes on and on, once", () => {
		expect(shown(100, 200, Number.POSITIVE_INFINITY)).toEqual([[100, 99 * 16 + 200]]);
	});
	it("is told now and then where it goes on for long", () => {
		const found = shown(100, 100, 400);
		expect(found.length).toBeGreaterThan(2);
		expect(found.length).toBeLessThan(6);
		expect(found.at(-1)?.[0]).toBe(100);
		expect(found.at(-1)?.[1]).toBeLessThanOrEqual(99 * 16 + 100);
		for (const [i, [, at]] of found.slice(1).entries()) expect(at - (found[i]?.[1] ?? 0)).toBeLessThanOrEqual(400 + 16);
	});
	it("is not waited for where it is about something else, or nothing", () => {
		const found: unknown[] = [];
		const rest = resting<ReturnType<typeof words> | null>((made) => found.push(made), 100, 400, words(0));
		rest.take(words(1, "io.bytes"));
		expect(found).toEqual([words(1, "io.bytes")]);
		rest.take(words(2, "io.bytes"));
		rest.take(null);
		expect(found.at(-1)).toBeNull();
		// what was not shown yet is forgotten with it
		vi.advanceTimersByTime(10_000);
		expect(found).toHaveLength(2);
		// and what comes after nothing rests like anything else
		rest.take(words(3));
		expect(found).toHaveLength(2);
		vi.advanceTimersByTime(100);
		expect(found.at(-1)).toEqual(words(3));
	});
	it("is never told after the end", () => {
		const show = vi.fn();
		const rest = resting<number>(show, 100, 400, 0);
		rest.take(1);
		rest.end();
		vi.advanceTimersByTime(10_000);
		expect(show).not.toHaveBeenCalled();
	});
});
