// SPDX-License-Identifier: Apache-2.0
import { computed, effect, signal } from "@preact/signals";
import { ask } from "../api/client";
import type { FleetAnswer, FleetHost } from "../generated/api";
import { worksheetAddress } from "../lib/addresses";
import { messageOf } from "../lib/errors";
import { isMeasure, largest, MEASURES, type Measure } from "./measures";

/** Spans of time up to the end of the archive, in words of the service; "" for all. */
export const SPANS: Record<string, string> = {
	"": "All",
	"-10min": "Last 10 minutes",
	"-1h": "Last hour",
	"-6h": "Last 6 hours",
	"-1d": "Last day",
	"-7d": "Last week",
};
/** By name, by the largest value, or by the value of a label. */
export type Order = "name" | "value" | `${typeof LABEL}${string}`;
export const LABEL = "label:";
/** The value of a label that a host lacks. */
const NO_VALUE = "-";

const isOrder = (text: string | null): text is Order => text === "value" || (text?.startsWith(LABEL) ?? false);

/** What has a row unless it is a label. */
export const HOST = "host";

export const measure = signal<Measure>("p99");
/** What has a row: a host, or all hosts with a value of a label. */
export const by = signal(HOST);
export const span = signal("");
export const order = signal<Order>("name");
export const archive = signal("");
/** Part of the names, or of the labels (`rack=r1`), of hosts that are shown. */
export const filter = signal("");
export const answer = signal<FleetAnswer | null>(null);
export const problem = signal("");
export const isAsking = signal(false);

/** Pause before the next question: recordings that grow have new values each second, archives after half a minute. */
const AGAIN_MS = { live: 2_000, archive: 30_000 };

/** Labels of a host, such as `rack=r1`, by name. */
export const labelsOf = ({ labels }: FleetHost): string[] =>
	Object.entries(labels)
		.map(([name, value]) => `${name}=${value}`)
		.toSorted();

/** Names of the labels that hosts have. */
export const labelNames = computed<readonly string[]>(() => answer.value?.labels ?? []);

/** Rows as they are shown. */
export const hosts = computed<readonly FleetHost[]>(() => {
	const part = filter.value.toLowerCase();
	const rows = (answer.value?.hosts ?? []).filter((row) =>
		[row.host, ...labelsOf(row)].some((text) => text.toLowerCase().includes(part)),
	);
	if (order.value === "name") return rows;
	if (order.value.startsWith(LABEL)) {
		const name = order.value.slice(LABEL.length);
		// hosts without the label are last
		const key = ({ labels }: FleetHost) => (name in labels ? `0${labels[name]}` : "1");
		return rows.toSorted((a, b) => key(a).localeCompare(key(b), "en", { numeric: true }));
	}
	const size = new Map(rows.map((row) => [row, largest(row.values) ?? Number.NEGATIVE_INFINITY]));
	return rows.toSorted((a, b) => (size.get(b) ?? 0) - (size.get(a) ?? 0));
});

/** Show what the address says, keep it true, and follow the archive. */
export async function begin(): Promise<void> {
	read();
	await load();
	if (!answer.value) throw new Error(problem.value);
	let shown = false;
	effect(() => {
		const words = new URLSearchParams({ measure: measure.value });
		if (by.value !== HOST) words.set("by", by.value);
		if (span.value) words.set("span", span.value);
		if (order.value !== "name") words.set("order", order.value);
		if (archive.value) words.set("archive", archive.value);
		if (filter.value) words.set("host", filter.value);
		history.replaceState(null, "", `#${words}`);
	});
	effect(() => {
		// requested again when one of these changes
		void [measure.value, by.value, span.value, archive.value];
		if (shown) load();
		shown = true;
	});
	addEventListener("hashchange", read);
	follow();
}

function follow(): void {
	setTimeout(
		async () => {
			if (!document.hidden) await load();
			follow();
		},
		answer.value?.live ? AGAIN_MS.live : AGAIN_MS.archive,
	);
}

function read(): void {
	const words = new URLSearchParams(location.hash.slice(1));
	const named = words.get("measure");
	if (isMeasure(named)) measure.value = named;
	by.value = words.get("by") || HOST;
	const length = words.get("span") ?? "";
	span.value = length in SPANS ? length : "";
	const sorting = words.get("order");
	order.value = isOrder(sorting) ? sorting : "name";
	archive.value = words.get("archive") ?? "";
	filter.value = words.get("host") ?? "";
}

let wishes = 0;

/** Ask for the rows; of several wishes the last one counts. */
export async function load(): Promise<void> {
	const wish = ++wishes;
	isAsking.value = true;
	try {
		const words: Record<string, string> = { measure: measure.peek() };
		if (by.peek() !== HOST) words.rows = by.peek();
		if (span.peek()) words.from = span.peek();
		if (archive.peek()) words.archive = archive.peek();
		const found = await ask<FleetAnswer>("fleet", words);
		if (wish !== wishes) return;
		answer.value = found;
		problem.value = "";
	} catch (error) {
		if (wish === wishes) problem.value = messageOf(error);
	} finally {
		if (wish === wishes) isAsking.value = false;
	}
}

/** Show the hosts of a row that is the sum of several. */
export function showHosts(row: FleetHost, label: string): void {
	by.value = HOST;
	filter.value = row.host === NO_VALUE ? "" : `${label}=${row.host}`;
	if (order.peek().startsWith(LABEL)) order.value = "name";
}

/** The worksheet of a host at a column, with a column before and after; "" where the host has no recording then. */
export function addressOf(row: FleetHost, column: number, from: FleetAnswer): string {
	const start = from.t0_ns + column * from.interval_ns;
	const recording =
		row.recordings.findLast((each) => each.first_ns < start + from.interval_ns && each.last_ns >= start) ?? null;
	if (!recording) return "";
	const low = Math.max(recording.first_ns, start - from.interval_ns);
	const high = Math.min(recording.last_ns + 1, start + 2 * from.interval_ns);
	return worksheetAddress(recording.name, low, high, MEASURES[from.measure].graph);
}
