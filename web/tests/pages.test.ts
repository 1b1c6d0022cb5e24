// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, it, vi } from "vitest";
import { unreachable } from "../src/api/answer-cache";
import { ask } from "../src/api/client";
import { EMPTY, graphOf, SECOND, sheet } from "../src/api/worksheet";
import type { DrawnMap, KeptFacts } from "../src/generated/api";
import { besides, messageOf, UNREACHED } from "../src/lib/errors";
import { otherTime } from "../src/worksheet/graph/other-time";
import { lostOf } from "../src/worksheet/pages/header";
import { ordered, reach } from "../src/worksheet/pages/kept";
import { FRAME_KEYS, heardOf, PAGE_KEYS, TIME_KEYS } from "../src/worksheet/pages/keys";
import { nextOrder } from "../src/worksheet/pages/parts";
import { answer, START } from "./fed";

const file = await vi.hoisted(async () => {
	const { signal } = await import("@preact/signals");
	return signal<object | null>(null);
});
vi.mock("../src/api/offline", async (actual) => ({
	...(await actual<object>()),
	inlined: () => file.value,
}));

afterEach(() => {
	vi.unstubAllGlobals();
	file.value = null;
	unreachable.value = false;
	sheet.value = EMPTY;
});

it("the message of an error has no control characters", () => {
	expect(messageOf(new Error("no device sda\u202e\u001b[2J"))).toBe("no device sda\\u202e\\x1b[2J");
});

describe("a service that is not reached", () => {
	it("is said once, in words of the page's own", async () => {
		vi.stubGlobal("fetch", async () => {
			throw new TypeError("Failed to fetch");
		});
		const words = await ask("kept").catch(messageOf);
		expect([words, unreachable.value]).toEqual([UNREACHED, true]);
		expect(besides(["No such statistic.", words as string, ""])).toEqual(["No such statistic."]);
	});
	it("is none where the page itself gave a question up", async () => {
		vi.stubGlobal("fetch", async () => {
			throw new DOMException("aborted", "AbortError");
		});
		const stop = new AbortController();
		stop.abort();
		await expect(ask("query", {}, stop.signal)).rejects.toThrow("aborted");
		expect(unreachable.value).toBe(false);
	});
});

describe("numbers of another time than is shown", () => {
	const spec = graphOf("io.ops", "g1");
	const held = { ...answer("io.ops", 5), values: Array.from({ length: 90 }, () => 5) };
	const show = (from: number, until: number) => {
		sheet.value = { ...EMPTY, graphs: [spec], time: { from: START + from * SECOND, until: START + until * SECOND } };
	};
	it("are told where no others will come: in a file, and while the service is away", () => {
		show(30, 90);
		expect(otherTime(spec, held)).toBeNull();
		unreachable.value = true;
		expect(otherTime(spec, held)).toEqual({ from: START, until: START + 90 * SECOND });
		unreachable.value = false;
		file.value = {};
		expect(otherTime(spec, held)).toEqual({ from: START, until: START + 90 * SECOND });
		show(0, 90);
		expect(otherTime(spec, held)).toBeNull();
		expect(otherTime(spec, null)).toBeNull();
	});
	it("are not those of a map whose first and last I/O lie within what is shown", () => {
		const map: DrawnMap = {
			schema: 1,
			kind: "map",
			statistic: "io.ops[latency]",
			t0_ns: START + 3 * SECOND,
			interval_ns: SECOND,
			events: 5,
			notes: [],
			gaps: [],
			window: [-3, 87],
			group: { columns: 80, interval_ns: SECOND } as DrawnMap["group"],
		};
		file.value = {};
		show(0, 90);
		expect(otherTime(spec, map)).toBeNull();
		show(30, 90);
		expect(otherTime(spec, map)).toEqual({ from: START, until: START + 90 * SECOND });
		expect(otherTime(spec, { ...map, window: null })).toBeNull();
	});
});

describe("keys of a shared file", () => {
	it("are those that need no service", () => {
		const heard = () => heardOf([...PAGE_KEYS, ...TIME_KEYS, ...FRAME_KEYS]).map(({ key }) => key);
		for (const key of ["d", "(", "+", "e", "M"]) expect(heard()).toContain(key);
		file.value = {};
		expect(heard()).toEqual(expect.arrayContaining(["?", "[", "0", "p", "x", "T"]));
		for (const key of ["d", "(", ")", "+", "w", "W", "K", "A", "R", "e", "m", "M"]) expect(heard()).not.toContain(key);
	});
});

describe("what a recording at rest lost", () => {
	it("is said of records, and not of names", () => {
		expect(lostOf({ overrun: 500_000, missed: 440, "unknown-name": 7 })).toBe("500 440 lost");
		expect(lostOf({ damaged: 3 })).toBe("3 unreadable");
		expect(lostOf({})).toBe("");
	});
});

describe("kept statistics", () => {
	const kept = (statistic: string, bytes: number, cpu_ns: number) => ({ statistic, bytes, cpu_ns }) as KeptFacts;
	const all = [kept("a", 5, 1), kept("b", 9, 3), kept("c", 7, 2)];
	it("stand in the order of a column, the largest first, then the smallest, then as they come", () => {
		const names = (order: Parameters<typeof ordered>[1]) => ordered(all, order).map((each) => each.statistic);
		const first = nextOrder(null, "on disk");
		expect(names(first)).toEqual(["b", "c", "a"]);
		expect(names(nextOrder(first, "on disk"))).toEqual(["a", "c", "b"]);
		expect(names(nextOrder(nextOrder(first, "on disk"), "on disk"))).toEqual(["a", "b", "c"]);
		expect(names(nextOrder(first, "CPU"))).toEqual(["b", "c", "a"]);
	});
	it("go back no farther than what they are of", () => {
		const [hour, minute] = [3600 * SECOND, 60 * SECOND];
		const tier = (first_ns: number | null, until_ns: number | null) =>
			({ tier: "1h", first_ns, until_ns }) as KeptFacts["tiers"][number];
		expect(reach(tier(0, 2 * hour), { since_ns: 50 * minute, until_ns: 75 * minute })).toBe(25 * minute);
		expect(reach(tier(0, 2 * hour), { since_ns: null, until_ns: null })).toBe(2 * hour);
		expect(reach(tier(null, null), { since_ns: 0, until_ns: hour })).toBe(0);
	});
});
