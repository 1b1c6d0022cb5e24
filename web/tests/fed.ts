// SPDX-License-Identifier: Apache-2.0
import { vi } from "vitest";
import { refusal, unreachable } from "../src/api/answer-cache";
import { feed } from "../src/api/feed";
import { EMPTY, type GraphSpec, recordings, SECOND, sheet, tick } from "../src/api/worksheet";
import type { SeriesAnswer } from "../src/generated/api";

export const START = 1_700_000_000 * SECOND;
export const served = {
	name: "rec",
	kind: "recording" as const,
	host: "there",
	clock: "realtime" as const,
	live: false,
	first_ns: START,
	last_ns: START + 600 * SECOND,
	events: { block: 5 },
	events_from_ns: null,
	samples: {},
	hosts: {},
	problem: "",
};

export const answer = (statistic: string, total: number): SeriesAnswer => ({
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
	losses: [],
	values: [total],
});

/** A stream that the test speaks through. */
export class Source {
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

/** What the page asked of the service, and what that answers. */
export const service = {
	asked: [] as string[],
	reply: (_url: string): { status: number; body: unknown } => ({ status: 404, body: null }),
};
let end: () => void = () => undefined;
export const spec = (): GraphSpec => sheet.value.graphs[0] as GraphSpec;
export const rest = () => vi.advanceTimersByTimeAsync(200);

/** Begin a page that asks this service. */
export function begin(): void {
	vi.useFakeTimers();
	service.asked = [];
	Source.opened = [];
	service.reply = () => ({ status: 200, body: answer("io.ops", service.asked.length) });
	vi.stubGlobal("EventSource", Source);
	vi.stubGlobal("fetch", async (url: string) => {
		service.asked.push(url);
		const { status, body } = service.reply(url);
		if (status === 0) throw new TypeError("no network");
		return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } });
	});
	recordings.value = [served];
	tick.value = null;
	unreachable.value = false;
	refusal.value = "";
	sheet.value = { ...EMPTY, recording: "rec", time: { from: START, until: START + 60 * SECOND } };
	end = feed();
}

/** Leave it. */
export function leave(): void {
	end();
	sheet.value = EMPTY;
	vi.useRealTimers();
	vi.unstubAllGlobals();
}
