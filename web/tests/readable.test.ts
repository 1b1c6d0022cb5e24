// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { AGAIN } from "../src/api/client";
import { feed, problemOf } from "../src/api/feed";
import { heardTick, learn, trouble } from "../src/api/served";
import { add, EMPTY, facts, type GraphSpec, recordings, SECOND, sheet, tick, whole } from "../src/api/worksheet";
import type { RecordingFacts, Tick } from "../src/generated/api";
import { watchReadable } from "../src/worksheet/readable";

const START = 1_700_000_000 * SECOND;
const GONE = "is gone: it was removed or moved";
const served: RecordingFacts = {
	...{ name: "rec", kind: "recording", host: "there", clock: "realtime", live: false, problem: "" },
	...{
		first_ns: START,
		last_ns: START + 600 * SECOND,
		events: { block: 5 },
		events_from_ns: START,
		samples: {},
		hosts: {},
	},
};
const unread: RecordingFacts = { ...served, host: "", first_ns: null, last_ns: null, events: {}, problem: GONE };
const at = (last_ns: number | null, problem = ""): Tick => ({
	...{
		schema: 1,
		recording: "rec",
		state: "recording",
		live: problem === "",
		events: {},
		lost: {},
		suspended: {},
		silent_s: 0,
	},
	...{ first_ns: last_ns && START, last_ns, now_ns: last_ns, bytes: 1, problem },
});

let there = true;
let asked: string[] = [];
const back = vi.fn(async () => undefined);
let ends: (() => void)[] = [];
const rest = (ms = 200) => vi.advanceTimersByTimeAsync(ms);

beforeEach(() => {
	vi.useFakeTimers();
	there = true;
	asked = [];
	back.mockClear();
	vi.stubGlobal("fetch", async (url: string) => {
		const path = url.split("?")[0]?.split("/").at(-1) ?? "";
		asked.push(path);
		if (path === "recordings") return Response.json({ schema: 1, recordings: [there ? served : unread] });
		return there ? Response.json({ statistic: "io.ops" }) : Response.json({ error: GONE, hint: "" }, { status: 409 });
	});
	vi.stubGlobal(
		"EventSource",
		class extends EventTarget {
			close = () => undefined;
		},
	);
	recordings.value = [served];
	tick.value = null;
	sheet.value = { ...EMPTY, recording: "rec", time: { from: START, until: START + 60 * SECOND } };
	ends = [feed(), watchReadable(back)];
});

afterEach(() => {
	for (const end of ends) end();
	sheet.value = EMPTY;
	vi.useRealTimers();
	vi.unstubAllGlobals();
});

describe("a recording that was removed", () => {
	it("is said to be gone, by name, and is asked anew once it is back", async () => {
		there = false;
		add("io.ops");
		await rest();
		expect(trouble.value).toBe(`rec: ${GONE}`);
		expect(problemOf(sheet.value.graphs[0] as GraphSpec).value).toBe(trouble.value);
		expect(whole.value).toEqual({ from: START, until: START + 600 * SECOND + 1 });
		there = true;
		asked = [];
		await rest(AGAIN + 200);
		expect([trouble.value, problemOf(sheet.value.graphs[0] as GraphSpec).value]).toEqual(["", ""]);
		expect(asked).toEqual(expect.arrayContaining(["recordings", "query", "marks", "losses"]));
		expect(back).toHaveBeenCalledOnce();
		asked = [];
		await rest(3 * AGAIN);
		expect(asked).toEqual([]);
	});
	it("stays as it was known, and live, while it is followed", () => {
		learn([{ ...served, live: true }]);
		heardTick(at(START + 700 * SECOND));
		const before = facts.value;
		heardTick(at(START + 701 * SECOND));
		expect(facts.value).toBe(before);
		heardTick(at(null, GONE));
		expect([tick.value?.last_ns, facts.value?.live, trouble.value]).toEqual([
			START + 701 * SECOND,
			true,
			`rec: ${GONE}`,
		]);
		heardTick(at(START + 702 * SECOND));
		expect([facts.value?.live, trouble.value]).toEqual([true, ""]);
		heardTick({ ...at(START + 702 * SECOND), live: false });
		expect(facts.value?.live).toBe(false);
	});
});
