import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { SeriesAnswer } from "../src/generated/api";
import { address, ask, question, Refusal } from "../src/model/ask";
import { answerOf, feed, problemOf, wordsOf } from "../src/model/feed";
import { refusal, unreachable } from "../src/model/held";
import { add, EMPTY, edit, type GraphSpec, recordings, SECOND, sheet, tick } from "../src/model/worksheet";

const START = 1_700_000_000 * SECOND;
const served = {
	name: "rec",
	kind: "recording" as const,
	host: "there",
	clock: "realtime" as const,
	live: false,
	first_ns: START,
	last_ns: START + 600 * SECOND,
	events: { block: 5 },
	samples: {},
	problem: "",
};

const answer = (statistic: string, total: number): SeriesAnswer => ({
	schema: 1,
	kind: "series",
	statistic,
	t0_ns: START,
	interval_ns: SECOND,
	unit: "1/s",
	source: "block",
	first_ns: START,
	until_ns: START + SECOND,
	covered_ns: SECOND,
	total,
	mean: total,
	notes: [],
	lost_by_column: [],
	values: [total],
});

/** A stream that the test speaks through. */
class Source {
	static opened: Source[] = [];
	readonly heard = new Map<string, (event: { data: string }) => void>();
	onopen: () => void = () => undefined;
	onerror: () => void = () => undefined;
	readyState = 1;
	closed = false;
	constructor(readonly url: string) {
		Source.opened.push(this);
	}
	addEventListener(name: string, take: (event: { data: string }) => void): void {
		this.heard.set(name, take);
	}
	say(name: string, data: unknown): void {
		this.heard.get(name)?.({ data: JSON.stringify(data) });
	}
	close(): void {
		this.closed = true;
	}
}

let asked: string[] = [];
let reply: (url: string) => { status: number; body: unknown };
let end: () => void = () => undefined;
const spec = (): GraphSpec => sheet.value.graphs[0] as GraphSpec;
const rest = () => vi.advanceTimersByTimeAsync(200);

beforeEach(() => {
	vi.useFakeTimers();
	asked = [];
	Source.opened = [];
	reply = () => ({ status: 200, body: answer("io.ops", asked.length) });
	vi.stubGlobal("EventSource", Source);
	vi.stubGlobal("fetch", async (url: string) => {
		asked.push(url);
		const { status, body } = reply(url);
		if (status === 0) throw new TypeError("no network");
		return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } });
	});
	recordings.value = [served];
	tick.value = null;
	unreachable.value = false;
	refusal.value = "";
	sheet.value = { ...EMPTY, recording: "rec", time: { from: START, until: START + 60 * SECOND } };
	end = feed();
});

afterEach(() => {
	end();
	sheet.value = EMPTY;
	vi.useRealTimers();
	vi.unstubAllGlobals();
});

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
		reply = () => ({
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
		expect(asked).toHaveLength(1);
		expect(answerOf(spec()).value).toMatchObject({ total: 1 });
		edit(spec().id, { height: 400, colour: "log", highlights: ["a"] });
		await rest();
		expect(asked).toHaveLength(1);
		sheet.value = { ...sheet.value, time: { from: START, until: START + 30 * SECOND } };
		await rest();
		expect(asked).toHaveLength(2);
		expect(Source.opened).toHaveLength(0);
	});
	it("ask before anything else happens, and once", async () => {
		add("io.ops");
		edit(spec().id, { statistic: "io.bytes" });
		await Promise.resolve();
		await Promise.resolve();
		expect(asked).toHaveLength(1);
		expect(asked[0]).toContain("statistic=io.bytes");
		await rest();
		expect(asked).toHaveLength(1);
	});
	it("ask for lines where these are shown", async () => {
		add("io.ops[latency]");
		await rest();
		edit(spec().id, { overlays: true });
		await rest();
		expect(asked.map((url) => new URL(url, "http://x").searchParams.get("lines"))).toEqual(["false", null]);
	});
	it("ask for the last place only while they are dragged", async () => {
		add("io.ops");
		await rest();
		for (let step = 1; step <= 20; step++)
			sheet.value = { ...sheet.value, time: { from: START + step * SECOND, until: START + (step + 60) * SECOND } };
		await rest();
		expect(asked.length).toBeLessThanOrEqual(3);
		expect(asked.at(-1)).toContain(`from=${START / SECOND + 20}000000000`);
	});
	it("have one question on its way, whatever they are moved", async () => {
		let [open, most] = [0, 0];
		vi.stubGlobal("fetch", async (url: string) => {
			asked.push(url);
			most = Math.max(most, ++open);
			await new Promise((done) => setTimeout(done, 400));
			open--;
			return new Response(JSON.stringify(answer("io.ops", asked.length)), { status: 200 });
		});
		add("io.ops");
		for (let step = 1; step <= 60; step++) {
			sheet.value = { ...sheet.value, time: { from: START + step * SECOND, until: START + (step + 60) * SECOND } };
			await vi.advanceTimersByTimeAsync(50);
		}
		await vi.advanceTimersByTimeAsync(2000);
		expect(most).toBe(1);
		expect(asked.length).toBeLessThanOrEqual(9);
		expect(asked.at(-1)).toContain(`from=${START / SECOND + 60}000000000`);
		expect(answerOf(spec()).value).toMatchObject({ total: asked.length });
	});
	it("say why they are refused, and don't ask again", async () => {
		reply = () => ({ status: 400, body: { schema: 1, error: "no such thing", hint: "" } });
		add("io.opps");
		await rest();
		expect(problemOf(spec()).value).toBe("no such thing");
		await vi.advanceTimersByTimeAsync(10_000);
		expect(asked).toHaveLength(1);
	});
	it("say that an answer can't be read, and don't ask again", async () => {
		for (const [type, words] of [
			["application/vnd.iolab.heat", "The service answered with no map."],
			["application/json", "The service answered with something that is no answer."],
		] as const) {
			sheet.value = { ...sheet.value, graphs: [] };
			asked = [];
			vi.stubGlobal("fetch", async (url: string) => {
				asked.push(url);
				return new Response("{", { status: 200, headers: { "content-type": type } });
			});
			add("io.ops");
			await rest();
			expect([problemOf(spec()).value, unreachable.value]).toEqual([words, false]);
			await vi.advanceTimersByTimeAsync(10_000);
			expect(asked).toHaveLength(1);
		}
	});
	it("show nothing of the recording or statistic that they showed before", async () => {
		add("io.ops");
		await rest();
		expect(answerOf(spec()).value).not.toBeNull();
		reply = () => ({ status: 400, body: { schema: 1, error: "the other one can't be read", hint: "" } });
		recordings.value = [served, { ...served, name: "other" }];
		sheet.value = { ...sheet.value, recording: "other" };
		expect(answerOf(spec()).value).toBeNull();
		await rest();
		expect([answerOf(spec()).value, problemOf(spec()).value]).toEqual([null, "the other one can't be read"]);
		reply = () => ({ status: 200, body: answer("io.ops", 3) });
		sheet.value = { ...sheet.value, recording: "rec" };
		expect(problemOf(spec()).value).toBe("");
		await rest();
		expect(answerOf(spec()).value).toMatchObject({ total: 3 });
	});
	it("go on by themselves when the service is there again", async () => {
		reply = () => ({ status: 0, body: null });
		add("io.ops");
		await rest();
		expect(unreachable.value).toBe(true);
		reply = () => ({ status: 200, body: answer("io.ops", 7) });
		await vi.advanceTimersByTimeAsync(2500);
		expect(unreachable.value).toBe(false);
		expect(answerOf(spec()).value).toMatchObject({ total: 7 });
	});
});

describe("graphs that follow", () => {
	const follow = async (statistics: string[]) => {
		recordings.value = [{ ...served, live: true }];
		sheet.value = { ...sheet.value, time: { live: 60 } };
		for (const each of statistics) add(each);
		await rest();
	};
	it("are brought by one stream, which holds what the service accepted", async () => {
		reply = (url) =>
			url.includes("opps")
				? { status: 400, body: { schema: 1, error: "no such thing", hint: "" } }
				: { status: 200, body: answer("io.ops", 1) };
		await follow(["io.ops", "io.opps"]);
		const open = Source.opened.filter((each) => !each.closed);
		expect(open).toHaveLength(1);
		expect(new URL(open[0]?.url ?? "", "http://x").searchParams.getAll("statistic")).toEqual(["io.ops"]);
		const before = asked.length;
		open[0]?.say("tick", { ...tickOf(START + 601 * SECOND) });
		open[0]?.say("answer", answer("io.ops", 99));
		await rest();
		expect(answerOf(spec()).value).toMatchObject({ total: 99 });
		expect(asked).toHaveLength(before);
		edit(spec().id, { highlights: ["x"] });
		await rest();
		expect(Source.opened.filter((each) => !each.closed)).toEqual(open);
	});
	it("are asked for again when they were refused: what begins to be recorded is there later", async () => {
		reply = () => ({ status: 400, body: { schema: 1, error: "no counters were recorded yet", hint: "" } });
		await follow(["cpu.utilization"]);
		expect(problemOf(spec()).value).toBe("no counters were recorded yet");
		const before = asked.length;
		await vi.advanceTimersByTimeAsync(10_000);
		expect(asked.length - before).toBeGreaterThanOrEqual(4);
		expect(asked.length - before).toBeLessThanOrEqual(5);
		reply = () => ({ status: 200, body: answer("cpu.utilization", 7) });
		await vi.advanceTimersByTimeAsync(2500);
		expect([problemOf(spec()).value, answerOf(spec()).value]).toMatchObject(["", { total: 7 }]);
		const streamed = Source.opened.filter((each) => !each.closed && each.url.includes("statistic=cpu"));
		expect(streamed).toHaveLength(1);
		const then = asked.length;
		await vi.advanceTimersByTimeAsync(10_000);
		expect(asked).toHaveLength(then);
	});
	it("are asked for once a column by whatever name they were typed", async () => {
		recordings.value = [{ ...served, live: true }];
		sheet.value = { ...sheet.value, time: { live: 86_400 } };
		add('io.ops[process="a"]');
		reply = () => ({ status: 200, body: answer("io.ops[process=a]", asked.length) });
		await rest();
		const before = asked.length;
		for (let second = 1; second <= 90; second++) {
			Source.opened.at(-1)?.say("tick", tickOf(START + (600 + second) * SECOND));
			await vi.advanceTimersByTimeAsync(1000);
		}
		expect(asked.length - before).toBeGreaterThanOrEqual(1);
		expect(asked.length - before).toBeLessThanOrEqual(2);
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
		const before = asked.length;
		Source.opened.at(-1)?.onerror();
		expect(unreachable.value).toBe(true);
		Source.opened.at(-1)?.onopen();
		await rest();
		expect(unreachable.value).toBe(false);
		expect(asked.length).toBeGreaterThan(before);
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
		reply = () => ({ status: 401, body: { schema: 1, error: "no token", hint: "" } });
		await close();
		expect([refusal.value, unreachable.value]).toEqual([expect.stringContaining("another token"), false]);
		reply = () => ({ status: 503, body: { schema: 1, error: "too many streams", hint: "close a page" } });
		const again = await close();
		expect([refusal.value, unreachable.value]).toEqual(["too many streams; close a page", false]);
		reply = () => ({ status: 200, body: answer("io.ops", 5) });
		const before = asked.length;
		again.onopen();
		await rest();
		expect([refusal.value, unreachable.value]).toEqual(["", false]);
		expect(asked.length).toBeGreaterThan(before);
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
			const put = new URL(asked.at(-1) ?? "", "http://x").searchParams;
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
		const before = asked.length;
		for (let second = 1; second <= 30; second++) {
			Source.opened.at(-1)?.say("tick", tickOf(START + (600 + second) * SECOND));
			await vi.advanceTimersByTimeAsync(1000);
		}
		expect(asked.length - before).toBeGreaterThanOrEqual(7);
		expect(asked.length - before).toBeLessThanOrEqual(11);
	});
	it("with a longer time than a stream has are asked for once a column", async () => {
		recordings.value = [{ ...served, live: true }];
		sheet.value = { ...sheet.value, time: { live: 86_400 } };
		add("io.ops");
		await rest();
		const before = asked.length;
		for (let second = 1; second <= 90; second++) {
			Source.opened.at(-1)?.say("tick", tickOf(START + (600 + second) * SECOND));
			await vi.advanceTimersByTimeAsync(1000);
		}
		expect(asked.length - before).toBeGreaterThanOrEqual(1);
		expect(asked.length - before).toBeLessThanOrEqual(2);
	});
	it("with a longer time than a stream has are asked for at once when it is not the time that moved", async () => {
		recordings.value = [{ ...served, live: true }];
		sheet.value = { ...sheet.value, time: { live: 86_400 } };
		add("io.ops");
		await rest();
		const ticked = async (second: number) => {
			Source.opened.at(-1)?.say("tick", tickOf(START + (600 + second) * SECOND));
			await vi.advanceTimersByTimeAsync(1000);
			return asked.length;
		};
		const before = await ticked(1);
		edit(spec().id, { overlays: true });
		expect(await ticked(2)).toBe(before + 1);
		expect(new URL(asked.at(-1) ?? "", "http://x").searchParams.get("lines")).toBeNull();
		sheet.value = { ...sheet.value, time: { live: 7 * 86_400 } };
		expect(await ticked(3)).toBe(before + 2);
		expect(await ticked(4)).toBe(before + 2);
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

function tickOf(last: number) {
	return {
		schema: 1,
		recording: "rec",
		state: "recording",
		live: true,
		first_ns: START,
		last_ns: last,
		events: { block: 6 },
		lost: {},
		suspended: {},
		bytes: 1,
	};
}
