// SPDX-License-Identifier: Apache-2.0
import { computed, effect, signal, untracked } from "@preact/signals";
import { refusal, unreachable } from "../api/answer-cache";
import { AGAIN, ask } from "../api/client";
import { feed } from "../api/feed";
import { inlined } from "../api/offline";
import { Refusal } from "../api/question";
import { learn } from "../api/served";
import {
	catalogue,
	cursor,
	facts,
	MOST,
	recordings,
	refused,
	sheet,
	tick,
	type Worksheet,
	whole,
} from "../api/worksheet";
import type { Recordings, Statistics } from "../generated/api";
import { messageOf } from "../lib/errors";
import { readWorksheet } from "./document-reader";
import { watchReadable } from "./readable";
import { formatPlace, hasTime, parsePlace, parseSelected } from "./worksheet-url";

/** Pages besides the worksheet. */
export type View = "worksheet" | "kept" | "alerts";
export const view = signal<View>("worksheet");
/** Whether the page was saved to a file, and there is no service to ask. */
export const offline = computed(() => inlined() !== null);

const WRITES = 250;
/** Ms between two questions for what can be answered, where something can already. */
const SELDOM = 30_000;

/** Find out what there is, show what the address says, and keep the address true. */
export async function begin(): Promise<void> {
	const held = inlined();
	if (!held) askAhead(parsePlace(address()).recording);
	recordings.value = held?.recordings ?? (await ask<Recordings>("recordings")).recordings;
	if (recordings.value.length === 0) throw new Error("Nothing is served.");
	if (held) await show(readWorksheet(held.worksheet));
	else await follow(address());
	feed();
	if (held) return;
	effect(remember);
	effect(recover);
	effect(refresh);
	watchReadable(refreshed);
	addEventListener("hashchange", () => {
		if (location.hash !== written) follow(location.hash).catch(refuse);
	});
}

/** The part of the page's address that says what is shown. */
const address = () => (location.hash.length > 1 ? location.hash : location.search);

let ahead: { name: string; found: Promise<Statistics> } | null = null;

/** Ask what a recording can answer before it is known to be there: the page waits for one answer, not for one after the other. */
function askAhead(name: string): void {
	if (!name) return;
	ahead = { name, found: ask<Statistics>("statistics", { recording: name }) };
	// who wants it hears of a failure
	ahead.found.catch(() => undefined);
}

/** What a recording can answer: nothing where it is known that it can't be read (`problem`), which is said elsewhere. */
async function statisticsOf(name: string, problem = ""): Promise<Pick<Statistics, "statistics">> {
	const known = ahead?.name === name ? ahead.found : null;
	ahead = null;
	return problem ? { statistics: [] } : (known ?? ask<Statistics>("statistics", { recording: name }));
}

/** Show what an address says. */
async function follow(text: string): Promise<void> {
	await show(parsePlace(text), hasTime(text));
	cursor.value = parseSelected(text);
}

/** Say on the page why a wish was refused. */
export function refuse(error: unknown): void {
	refused.value = messageOf(error);
}

/**
 * Show a worksheet, or of too many graphs the first. Where its recording is not served, the first served recording takes its place, with
 * a message: under its own name it would be another worksheet, so it has none. `timed`: whether its time was asked for; otherwise what is
 * no longer recorded is shown whole.
 */
export async function show(asked: Worksheet, timed = true): Promise<void> {
	const named = recordings.value.find((each) => each.name === asked.recording);
	const found = named ?? recordings.value[0];
	const absent = asked.recording !== "" && found !== undefined && !named;
	const left = asked.graphs.length - MOST;
	const words = [
		absent && `There is no recording ${asked.recording} here: ${found.name} is shown.`,
		left > 0 && `It has ${asked.graphs.length} graphs: the first ${MOST} are shown, ${left} are left out.`,
	];
	refused.value = words.filter(Boolean).join(" ");
	const name = absent ? "" : asked.name;
	await choose(found?.name ?? "", { ...asked, name, graphs: asked.graphs.slice(0, MOST) }, timed);
}

let wishes = 0;

/** Show a recording, with the graphs of a worksheet, or those that are shown now. Of several wishes the last one counts. */
export async function choose(name: string, given?: Worksheet, timed = true): Promise<void> {
	const wish = ++wishes;
	const found = recordings.value.find((each) => each.name === name);
	if (name !== sheet.value.recording || catalogue.value.length === 0) {
		const held = inlined()?.statistics ?? (await statisticsOf(name, found?.problem)).statistics;
		if (wish !== wishes) return;
		tick.value = null;
		cursor.value = null;
		catalogue.value = held;
	}
	const asked = given ?? sheet.value;
	const past = !timed && found !== undefined && !found.live && found.problem === "" && "live" in asked.time;
	const other = asked.recording !== "" && asked.recording !== name;
	sheet.value = { ...asked, recording: name };
	// a time that was asked for stays: what has ended may go on
	if (past) sheet.value = { ...sheet.value, time: whole.value };
	else if (other) sheet.value = { ...sheet.value, time: found?.live ? { live: 60 } : whole.value, compare: null };
}

/** Ask again what the recording can answer: a source that starts later adds statistics. */
export async function refreshCatalogue(): Promise<void> {
	const { recording } = sheet.peek();
	if (inlined() || !recording) return;
	try {
		const found = (await ask<Statistics>("statistics", { recording })).statistics;
		const changed = JSON.stringify(found) !== JSON.stringify(catalogue.peek());
		if (changed && sheet.peek().recording === recording) catalogue.value = found;
	} catch {
		// what is known of it stays
	}
}

/** A recording that can be read again is shown in its current state; of a recording that could not be read when it was chosen nothing is known. */
const refreshed = (): Promise<void> =>
	catalogue.peek().length > 0 ? refreshCatalogue() : choose(sheet.peek().recording).catch(refuse);

const sources = computed(() =>
	Object.keys(tick.value?.events ?? {})
		.sort()
		.join(),
);
/** How often a page without graphs asks what can be answered, in ms: often while nothing can. */
const catalogueInterval = computed(() => {
	if (!facts.value?.live || sheet.value.graphs.length > 0) return 0;
	return catalogue.value.some(({ available }) => available) ? SELDOM : AGAIN;
});

/** Something new is recorded, or a worksheet without graphs waits for it. */
function refresh(): (() => void) | undefined {
	if (sources.value) void untracked(refreshCatalogue);
	if (catalogueInterval.value === 0) return undefined;
	const asking = setInterval(refreshCatalogue, catalogueInterval.value);
	return () => clearInterval(asking);
}

let written = "";
let timer: ReturnType<typeof setTimeout> | undefined;

/** The address says what is shown: at once after a rest, and else when it rests. A browser takes few addresses a second. */
function remember(): void {
	// while time moves the address is made once, at rest
	void [sheet.value, cursor.value];
	const write = () => {
		const text = `#${formatPlace(sheet.peek(), cursor.peek())}`;
		history.replaceState(null, "", `${location.pathname}${text}`);
		written = location.hash;
	};
	const rested = timer === undefined;
	clearTimeout(timer);
	if (rested) write();
	timer = setTimeout(() => {
		timer = undefined;
		if (!rested) write();
	}, WRITES);
}

/** What is served may be another one when the service is there again. */
function recover(): (() => void) | undefined {
	if (!unreachable.value) return undefined;
	const asking = setInterval(async () => {
		try {
			const found = (await ask<Recordings>("recordings")).recordings;
			learn(found);
			unreachable.value = false;
			refusal.value = "";
			if (!untracked(() => facts.value) && found[0]) await show(sheet.peek());
		} catch (error) {
			// requested again; a service that refuses is reachable
			refusal.value = error instanceof Refusal ? error.message : "";
		}
	}, AGAIN);
	return () => clearInterval(asking);
}
