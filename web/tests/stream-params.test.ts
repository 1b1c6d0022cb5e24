// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { refusal, unreachable } from "../src/api/answer-cache";
import { answerOf, problemOf, wordsOf } from "../src/api/feed";
import { add, behind, edit, recordings, SECOND, sheet, tick, time, whole } from "../src/api/worksheet";
import type { Tick } from "../src/generated/api";
import { answer, begin, leave, rest, Source, START, served, service, spec } from "./fed";

beforeEach(begin);
afterEach(leave);

describe("graphs that follow", () => {
	const follow = async (statistics: string[]) => {
		recordings.value = [{ ...served, live: true }];
		sheet.value = { ...sheet.value, time: { live: 60 } };
		for (const each of statistics) add(each);
		await rest();
	};
	it("are brought by one stream, which holds what the service accepted", async () => {
		service.reply = (url) =>
			url.includes("opps")
				? { status: 400, body: { schema: 1, error: "no such thing", hint: "" } }
				: { status: 200, body: answer("io.ops", 1) };
		await follow(["io.ops", "io.opps"]);
		const open = Source.opened.filter((each) => !each.closed);
		expect(open).toHaveLength(1);
		expect(new URL(open[0]?.url ?? "", "http://x").searchParams.getAll("statistic")).toEqual(["io.ops"]);
		const before = service.asked.length;
		open[0]?.say("tick", { ...tickOf(START + 601 * SECOND) });
		open[0]?.say("answer", answer("io.ops", 99));
		await rest();
		expect(answerOf(spec()).value).toMatchObject({ total: 99 });
		expect(service.asked).toHaveLength(before);
		edit(spec().id, { highlights: ["x"] });
		await rest();
		expect(Source.opened.filter((each) => !each.closed)).toEqual(open);
	});
	it("go on by themselves when an ended recording is recorded again, and keep their range", async () => {
		await follow(["io.ops"]);
		const open = () => Source.opened.filter((each) => !each.closed).at(-1);
		open()?.say("tick", { ...tickOf(START + 601 * SECOND), live: false, state: "ended" });
		await rest();
		expect([recordings.value[0]?.live, sheet.value.time]).toEqual([false, { live: 60 }]);
		expect(open()).toBeDefined();
		open()?.say("tick", tickOf(START + 640 * SECOND));
		open()?.say("answer", answer("io.ops", 5));
		await rest();
		expect([recordings.value[0]?.live, sheet.value.time]).toEqual([true, { live: 60 }]);
		expect(time.value.until).toBe(START + 640 * SECOND + 1);
		expect(answerOf(spec()).value).toMatchObject({ total: 5 });
	});
	it("are asked for again when they were refused: what begins to be recorded is there later", async () => {
		service.reply = () => ({ status: 400, body: { schema: 1, error: "no counters were recorded yet", hint: "" } });
		await follow(["cpu.utilization"]);
		expect(problemOf(spec()).value).toBe("no counters were recorded yet");
		const before = service.asked.length;
		await vi.advanceTimersByTimeAsync(10_000);
		expect(service.asked.length - before).toBeGreaterThanOrEqual(4);
		expect(service.asked.length - before).toBeLessThanOrEqual(5);
		service.reply = () => ({ status: 200, body: answer("cpu.utilization", 7) });
		await vi.advanceTimersByTimeAsync(2500);
		expect([problemOf(spec()).value, answerOf(spec()).value]).toMatchObject(["", { total: 7 }]);
		const streamed = Source.opened.filter((each) => !each.closed && each.url.includes("statistic=cpu"));
		expect(streamed).toHaveLength(1);
		const then = service.asked.length;
		await vi.advanceTimersByTimeAsync(10_000);
		expect(service.asked).toHaveLength(then);
	});
	it("are asked for once a column by whatever name they were typed", async () => {
		recordings.value = [{ ...served, live: true }];
		sheet.value = { ...sheet.value, time: { live: 86_400 } };
		add('io.ops[process="a"]');
		service.reply = () => ({ status: 200, body: answer("io.ops[process=a]", service.asked.length) });
		await rest();
		const before = service.asked.length;
		for (let second = 1; second <= 90; second++) {
			Source.opened.at(-1)?.say("tick", tickOf(START + (600 + second) * SECOND));
			await vi.advanceTimersByTimeAsync(1000);
		}
		expect(service.asked.length - before).toBeGreaterThanOrEqual(1);
		expect(service.asked.length - before).toBeLessThanOrEqual(2);
	});
	it("stand while they are held, and the recording's end still moves", async () => {
		await follow(["io.ops"]);
		sheet.value = { ...sheet.value, time: { from: START, until: START + 60 * SECOND } };
		await rest();
		const open = Source.opened.filter((each) => !each.closed);
		expect(open).toHaveLength(1);
		const held = answerOf(spec()).value;
		open[0]?.say("answer", answer("io.ops", 1234));
		expect(answerOf(spec()).value).toBe(held);
		open[0]?.say("tick", tickOf(START + 700 * SECOND));
		expect(tick.value?.last_ns).toBe(START + 700 * SECOND);
	});
	it("ask anew once the service was away", async () => {
		await follow(["io.ops"]);
		const before = service.asked.length;
		Source.opened.at(-1)?.onerror();
		expect(unreachable.value).toBe(true);
		Source.opened.at(-1)?.onopen();
		await rest();
		expect(unreachable.value).toBe(false);
		expect(service.asked.length).toBeGreaterThan(before);
	});
	it("open a stream again that was refused", async () => {
		await follow(["io.ops"]);
		const last = Source.opened.at(-1) as Source;
		last.readyState = 2;
		last.onerror();
		await vi.advanceTimersByTimeAsync(2500);
		const again = Source.opened.at(-1) as Source;
		expect(again).not.toBe(last);
		again.onopen();
		expect(unreachable.value).toBe(false);
	});
	it("say why a stream is refused until there is one", async () => {
		await follow(["io.ops"]);
		const close = async () => {
			const last = Source.opened.at(-1) as Source;
			last.readyState = 2;
			last.onerror();
			await vi.advanceTimersByTimeAsync(2500);
			return Source.opened.at(-1) as Source;
		};
		service.reply = () => ({ status: 401, body: { schema: 1, error: "no token", hint: "" } });
		await close();
		expect([refusal.value, unreachable.value]).toEqual([expect.stringContaining("another token"), false]);
		service.reply = () => ({ status: 503, body: { schema: 1, error: "too many streams", hint: "close a page" } });
		const again = await close();
		expect([refusal.value, unreachable.value]).toEqual(["too many streams; close a page", false]);
		service.reply = () => ({ status: 200, body: answer("io.ops", 5) });
		const before = service.asked.length;
		again.onopen();
		await rest();
		expect([refusal.value, unreachable.value]).toEqual(["", false]);
		expect(service.asked.length).toBeGreaterThan(before);
		again.onerror();
		expect(unreachable.value).toBe(true);
	});
	it("have their columns and no lines that aren't shown, streamed or asked for", async () => {
		for (const [live, interval] of [
			[20, "50000000ns"],
			[60, "1000000000ns"],
			[600, "1000000000ns"],
		] as const) {
			recordings.value = [{ ...served, live: true }];
			sheet.value = { ...sheet.value, graphs: [], time: { live } };
			add("io.ops");
			await rest();
			const open = Source.opened.filter((each) => !each.closed);
			const streamed = new URL(open[0]?.url ?? "", "http://x").searchParams;
			const put = new URL(service.asked.at(-1) ?? "", "http://x").searchParams;
			expect([open.length, streamed.get("seconds"), streamed.get("interval")]).toEqual([1, String(live), interval]);
			expect([put.get("interval"), put.get("lines"), streamed.get("lines")]).toEqual([interval, "false", "false"]);
		}
		edit(spec().id, { overlays: true });
		await rest();
		const last = new URL(Source.opened.at(-1)?.url ?? "", "http://x").searchParams;
		expect(last.get("lines")).toBeNull();
	});
	it("that show more than ten minutes are asked for when a pixel has passed", async () => {
		recordings.value = [{ ...served, live: true }];
		sheet.value = { ...sheet.value, time: { live: 3600 } };
		add("io.ops");
		await rest();
		expect(new URL(Source.opened.at(-1)?.url ?? "", "http://x").searchParams.get("statistic")).toBeNull();
		const before = service.asked.length;
		for (let second = 1; second <= 30; second++) {
			Source.opened.at(-1)?.say("tick", tickOf(START + (600 + second) * SECOND));
			await vi.advanceTimersByTimeAsync(1000);
		}
		expect(service.asked.length - before).toBeGreaterThanOrEqual(7);
		expect(service.asked.length - before).toBeLessThanOrEqual(11);
	});
	it("with a longer time than a stream has are asked for once a column", async () => {
		recordings.value = [{ ...served, live: true }];
		sheet.value = { ...sheet.value, time: { live: 86_400 } };
		add("io.ops");
		await rest();
		const before = service.asked.length;
		for (let second = 1; second <= 90; second++) {
			Source.opened.at(-1)?.say("tick", tickOf(START + (600 + second) * SECOND));
			await vi.advanceTimersByTimeAsync(1000);
		}
		expect(service.asked.length - before).toBeGreaterThanOrEqual(1);
		expect(service.asked.length - before).toBeLessThanOrEqual(2);
	});
	it("with a longer time than a stream has are asked for at once when it is not the time that moved", async () => {
		recordings.value = [{ ...served, live: true }];
		sheet.value = { ...sheet.value, time: { live: 86_400 } };
		add("io.ops");
		await rest();
		const ticked = async (second: number) => {
			Source.opened.at(-1)?.say("tick", tickOf(START + (600 + second) * SECOND));
			await vi.advanceTimersByTimeAsync(1000);
			return service.asked.length;
		};
		const before = await ticked(1);
		edit(spec().id, { overlays: true });
		expect(await ticked(2)).toBe(before + 1);
		expect(new URL(service.asked.at(-1) ?? "", "http://x").searchParams.get("lines")).toBeNull();
		sheet.value = { ...sheet.value, time: { live: 7 * 86_400 } };
		expect(await ticked(3)).toBe(before + 2);
		expect(await ticked(4)).toBe(before + 2);
	});
	it("go back with a recording that is begun again after the clock was set back, and say by how much", () => {
		recordings.value = [{ ...served, live: true }];
		sheet.value = { ...sheet.value, time: { live: 60 } };
		tick.value = tickOf(START + 600 * SECOND - 1);
		expect([time.value.until, behind.value]).toEqual([START + 600 * SECOND, 0]);
		tick.value = { ...tickOf(START + 600 * SECOND - 1), now_ns: START + 100 * SECOND - 1 };
		expect(time.value).toEqual({ from: START + 40 * SECOND, until: START + 100 * SECOND });
		expect([whole.value.until, behind.value]).toEqual([START + 600 * SECOND, 500 * SECOND]);
		tick.value = null;
	});
	it("ask in whole columns", async () => {
		recordings.value = [{ ...served, last_ns: START + 600.25 * SECOND, live: true }];
		sheet.value = { ...sheet.value, time: { live: 60 } };
		add("io.ops");
		const words = wordsOf(spec());
		expect([words.from, words.to, words.interval]).toEqual([
			String(START + 540 * SECOND),
			String(START + 601 * SECOND),
			"1000000000ns",
		]);
	});
});

function tickOf(last: number): Tick {
	return {
		schema: 1,
		recording: "rec",
		state: "recording",
		live: true,
		first_ns: START,
		last_ns: last,
		now_ns: last,
		events: { block: 6 },
		lost: {},
		suspended: {},
		silent_s: 0,
		bytes: 1,
		problem: "",
	};
}
