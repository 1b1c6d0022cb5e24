// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ask, asked, waiting } from "../src/api/client";
import { wordsOf } from "../src/api/feed";
import { question } from "../src/api/question";
import {
	add,
	catalogue,
	close,
	EMPTY,
	edit,
	type GraphSpec,
	MOST,
	recordings,
	refused,
	SECOND,
	sheet,
} from "../src/api/worksheet";
import { readWorksheet } from "../src/worksheet/document-reader";
import { followMarks, marks } from "../src/worksheet/marks";
import { held, questions } from "../src/worksheet/pages/share";
import { choose, show } from "../src/worksheet/session";

const START = 1_700_000_000 * SECOND;
const spec = (place: number): GraphSpec => sheet.value.graphs[place] as GraphSpec;
let release: Map<string, (status: number) => void>;

const served = (name: string, live: boolean) => ({
	name,
	live,
	kind: "recording" as const,
	host: "",
	clock: "realtime" as const,
	first_ns: START,
	last_ns: START + SECOND,
	events: {},
	events_from_ns: null,
	samples: {},
	hosts: {},
	problem: "",
});

beforeEach(() => {
	release = new Map();
	vi.stubGlobal(
		"fetch",
		(url: string) =>
			new Promise<Response>((done) =>
				release.set(url.replace("/api/v1/", ""), (status) =>
					done(new Response(JSON.stringify(status === 200 ? { statistics: [{ name: url }] } : null), { status })),
				),
			),
	);
	sheet.value = { ...EMPTY, recording: "rec", time: { from: START, until: START + 60 * SECOND } };
});

afterEach(() => {
	vi.unstubAllGlobals();
	sheet.value = EMPTY;
	recordings.value = [];
	catalogue.value = [];
});

describe("questions that were put", () => {
	it("are known while they are on their way, and forgotten when they are refused", async () => {
		const [taken, twice, refused] = [ask("marks", { a: 1 }), ask("marks", { a: 1 }), ask("marks", { a: 2 })];
		expect(asked()).toEqual(expect.arrayContaining(["marks?a=1", "marks?a=2"]));
		expect(waiting()).toEqual(["marks?a=1", "marks?a=2"]);
		release.get("marks?a=2")?.(400);
		await expect(refused).rejects.toThrow();
		expect(asked()).not.toContain("marks?a=2");
		expect(waiting()).toEqual(["marks?a=1"]);
		release.get("marks?a=1")?.(200);
		await twice;
		expect([waiting(), asked().includes("marks?a=1")]).toEqual([["marks?a=1"], true]);
		void taken;
	});
});

describe("a file that is shared", () => {
	it("holds what is asked of the graphs, the time and the recording that are shown", () => {
		add("io.ops[op=write][latency]");
		const closed = add("io.bytes");
		const [map, other] = [wordsOf(spec(0)), wordsOf(spec(1))];
		close(closed);
		edit(spec(0).id, { by: "process" });
		const panel = { ...map, drawn: null, statistic: "io.ops[op=write][process]", interval: "whole" };
		const held = [
			question("query", map),
			question("layers", { ...map, drawn: null, by: "process", key: ["a"] }),
			question("query", panel),
			question("marks", { recording: "rec" }),
			question("losses", { recording: "rec" }),
		];
		const left = [
			"recordings",
			"worksheets",
			question("statistics", { recording: "rec" }),
			question("kept", { recording: "rec" }),
			question("alerts/log", { recording: "rec" }),
			question("query", other),
			question("query", { ...map, recording: "another" }),
			question("query", { ...map, statistic: "io.ops[latency]" }),
			question("query", { ...panel, from: String(START + 5 * SECOND) }),
			question("marks", { recording: "another" }),
			question("difference", { ...map, drawn: null, other_from: 1, other_to: 2 }),
		];
		expect(questions([...left, ...held])).toEqual(held);
	});
});

describe("a file with more answers than it can hold", () => {
	it("leaves out the oldest, and nothing of what is shown", () => {
		add("io.ops[op=write][latency]");
		add("io.bytes");
		const map = wordsOf(spec(0));
		const panel = (place: number) =>
			question("query", { ...map, drawn: null, statistic: "io.ops[op=write][process]", interval: `${place}ns` });
		const many = Array.from({ length: 600 }, (_, place) => panel(place));
		const found = held(many);
		expect(found).toHaveLength(256);
		expect(found).toEqual(
			expect.arrayContaining([
				question("query", map),
				question("query", wordsOf(spec(1))),
				question("marks", { recording: "rec" }),
				question("losses", { recording: "rec" }),
				panel(599),
			]),
		);
		expect(found).not.toContain(panel(0));
	});
});

describe("of two recordings that are chosen one after the other", () => {
	it("the last one counts, whichever answers first", async () => {
		recordings.value = ["rec", "slow", "quick"].map((name) => served(name, false));
		const [first, last] = [choose("slow"), choose("quick")];
		release.get("statistics?recording=quick")?.(200);
		await last;
		expect(sheet.value.recording).toBe("quick");
		const known = catalogue.value;
		release.get("statistics?recording=slow")?.(200);
		await first;
		expect([sheet.value.recording, catalogue.value]).toEqual(["quick", known]);
	});
});

describe("a worksheet of more graphs than a page has", () => {
	it("shows the first of them, and says so", async () => {
		recordings.value = [served("rec", false)];
		catalogue.value = [];
		const many = Array.from({ length: MOST + 3 }, (_, i) => ({ id: `g${i}`, statistic: "io.ops" }));
		const read = readWorksheet({ recording: "rec", graphs: many });
		expect(read.graphs).toHaveLength(MOST + 3);
		const shown = show(read);
		release.get("statistics?recording=rec")?.(200);
		await shown;
		expect(sheet.value.graphs).toHaveLength(MOST);
		expect(refused.value).toContain("3 are left out");
		refused.value = "";
	});
});

describe("marks and gaps", () => {
	it("are asked for anew while something is recorded, and with another recording", async () => {
		vi.useFakeTimers();
		const urls: string[] = [];
		vi.stubGlobal("fetch", async (url: string) => {
			urls.push(url.replace("/api/v1/", ""));
			const body = url.includes("marks") ? { marks: [], left: 0 } : { gaps: [[urls.length, 99]], recorded: [] };
			return new Response(JSON.stringify(body), { status: 200 });
		});
		recordings.value = [served("rec", true), served("old", false)];
		const end = followMarks();
		await vi.advanceTimersByTimeAsync(10);
		const first = marks.value.gaps;
		expect(urls).toEqual(["marks?recording=rec", "losses?recording=rec"]);
		add("io.ops");
		await vi.advanceTimersByTimeAsync(65_000);
		expect(urls).toHaveLength(6);
		expect(marks.value.gaps).not.toEqual(first);
		sheet.value = { ...sheet.value, recording: "old" };
		await vi.advanceTimersByTimeAsync(65_000);
		expect(urls.slice(6)).toEqual(["marks?recording=old", "losses?recording=old"]);
		end();
		vi.useRealTimers();
	});
});
