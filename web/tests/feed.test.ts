// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { unreachable } from "../src/api/answer-cache";
import { address, ask } from "../src/api/client";
import { answerOf, problemOf, wordsOf } from "../src/api/feed";
import { question, Refusal } from "../src/api/question";
import { add, edit, recordings, SECOND, sheet } from "../src/api/worksheet";
import { answer, begin, leave, rest, Source, START, served, service, spec } from "./fed";

beforeEach(begin);
afterEach(leave);

describe("questions", () => {
	it("have one order, and moments are whole", () => {
		expect(question("query", { to: START + 0.5, from: 5, statistic: "a&b", source: "", nothing: null })).toBe(
			"query?from=5&statistic=a%26b&to=1700000000000000000",
		);
		expect(address("stream", { statistic: ["io.ops[op]", "b"] })).toBe(
			"/api/v1/stream?statistic=io.ops%5Bop%5D&statistic=b",
		);
	});
	it("begin with the clock, whatever room is shown before it", () => {
		add("io.ops");
		for (const [from, until, asked] of [
			[-30, 30, ["0", "30000000000"]],
			[-90, -30, ["0", "1000000000"]],
		] as const) {
			sheet.value = { ...sheet.value, time: { from: from * SECOND, until: until * SECOND } };
			const { from: first, to } = wordsOf(spec());
			expect([first, to]).toEqual(asked);
		}
	});
	it("that are refused say why", async () => {
		service.reply = () => ({
			status: 400,
			body: { schema: 1, error: "there is no 'io.opps'", hint: "did you mean 'io.ops'?" },
		});
		await expect(ask("query", {})).rejects.toThrow("there is no 'io.opps'; did you mean 'io.ops'?");
		await expect(ask("query", {})).rejects.toBeInstanceOf(Refusal);
	});
});

describe("graphs that stand", () => {
	it("ask once for what they show, and again when that is another thing", async () => {
		add("io.ops");
		await rest();
		expect(service.asked).toHaveLength(1);
		expect(answerOf(spec()).value).toMatchObject({ total: 1 });
		edit(spec().id, { height: 400, colour: "log", highlights: ["a"] });
		await rest();
		expect(service.asked).toHaveLength(1);
		sheet.value = { ...sheet.value, time: { from: START, until: START + 30 * SECOND } };
		await rest();
		expect(service.asked).toHaveLength(2);
		expect(Source.opened).toHaveLength(0);
	});
	it("ask before anything else happens, and once", async () => {
		add("io.ops");
		edit(spec().id, { statistic: "io.bytes" });
		await Promise.resolve();
		await Promise.resolve();
		expect(service.asked).toHaveLength(1);
		expect(service.asked[0]).toContain("statistic=io.bytes");
		await rest();
		expect(service.asked).toHaveLength(1);
	});
	it("ask for lines where these are shown", async () => {
		add("io.ops[latency]");
		await rest();
		edit(spec().id, { overlays: true });
		await rest();
		expect(service.asked.map((url) => new URL(url, "http://x").searchParams.get("lines"))).toEqual(["false", null]);
	});
	it("ask for the last place only while they are dragged", async () => {
		add("io.ops");
		await rest();
		for (let step = 1; step <= 20; step++)
			sheet.value = { ...sheet.value, time: { from: START + step * SECOND, until: START + (step + 60) * SECOND } };
		await rest();
		expect(service.asked.length).toBeLessThanOrEqual(3);
		expect(service.asked.at(-1)).toContain(`from=${START / SECOND + 20}000000000`);
	});
	it("have one question on its way, whatever they are moved", async () => {
		let [open, most] = [0, 0];
		vi.stubGlobal("fetch", async (url: string) => {
			service.asked.push(url);
			most = Math.max(most, ++open);
			await new Promise((done) => setTimeout(done, 400));
			open--;
			return new Response(JSON.stringify(answer("io.ops", service.asked.length)), { status: 200 });
		});
		add("io.ops");
		for (let step = 1; step <= 60; step++) {
			sheet.value = { ...sheet.value, time: { from: START + step * SECOND, until: START + (step + 60) * SECOND } };
			await vi.advanceTimersByTimeAsync(50);
		}
		await vi.advanceTimersByTimeAsync(2000);
		expect(most).toBe(1);
		expect(service.asked.length).toBeLessThanOrEqual(9);
		expect(service.asked.at(-1)).toContain(`from=${START / SECOND + 60}000000000`);
		expect(answerOf(spec()).value).toMatchObject({ total: service.asked.length });
	});
	it("say why they are refused, and don't ask again", async () => {
		service.reply = () => ({ status: 400, body: { schema: 1, error: "no such thing", hint: "" } });
		add("io.opps");
		await rest();
		expect(problemOf(spec()).value).toBe("no such thing");
		await vi.advanceTimersByTimeAsync(10_000);
		expect(service.asked).toHaveLength(1);
	});
	it("say that an answer can't be read, and don't ask again", async () => {
		for (const [type, words] of [
			["application/vnd.iolab.heat", "The service answered with no map."],
			["application/json", "The service answered with something that is no answer."],
		] as const) {
			sheet.value = { ...sheet.value, graphs: [] };
			service.asked = [];
			vi.stubGlobal("fetch", async (url: string) => {
				service.asked.push(url);
				return new Response("{", { status: 200, headers: { "content-type": type } });
			});
			add("io.ops");
			await rest();
			expect([problemOf(spec()).value, unreachable.value]).toEqual([words, false]);
			await vi.advanceTimersByTimeAsync(10_000);
			expect(service.asked).toHaveLength(1);
		}
	});
	it("show nothing of the recording or statistic that they showed before", async () => {
		add("io.ops");
		await rest();
		expect(answerOf(spec()).value).not.toBeNull();
		service.reply = () => ({ status: 400, body: { schema: 1, error: "the other one can't be read", hint: "" } });
		recordings.value = [served, { ...served, name: "other" }];
		sheet.value = { ...sheet.value, recording: "other" };
		expect(answerOf(spec()).value).toBeNull();
		await rest();
		expect([answerOf(spec()).value, problemOf(spec()).value]).toEqual([null, "the other one can't be read"]);
		service.reply = () => ({ status: 200, body: answer("io.ops", 3) });
		sheet.value = { ...sheet.value, recording: "rec" };
		expect(problemOf(spec()).value).toBe("");
		await rest();
		expect(answerOf(spec()).value).toMatchObject({ total: 3 });
	});
	it("go on by themselves when the service is there again", async () => {
		service.reply = () => ({ status: 0, body: null });
		add("io.ops");
		await rest();
		expect(unreachable.value).toBe(true);
		service.reply = () => ({ status: 200, body: answer("io.ops", 7) });
		await vi.advanceTimersByTimeAsync(2500);
		expect(unreachable.value).toBe(false);
		expect(answerOf(spec()).value).toMatchObject({ total: 7 });
	});
});
