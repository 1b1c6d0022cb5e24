// SPDX-License-Identifier: Apache-2.0
import { effect, type Signal, untracked } from "@preact/signals";
import { forgetAsked, type Held, heldOf, keepOnly, show, unreachable } from "./answer-cache";
import { AGAIN, ask } from "./client";
import { snapped } from "./columns";
import { askedOf, drawnOf } from "./painters";
import { type Drawable, question, Refusal, type Words } from "./question";
import { columnLength } from "./resolution";
import { following, streamedSeconds, TOP } from "./stream-params";
import { ahead, type GraphSpec, type Span, sheet, spanOf } from "./worksheet";

/** A moving graph is requested after this time at rest, in ms, and at the latest this long after it began to move. */
const REST = 120;
const LATEST = 500;
/** A graph is about so many pixels wide. */
const PIXELS = 1200;

/** What a graph shows: null before the first answer. The last one stays until the next is there. */
export const answerOf = (spec: GraphSpec): Signal<Drawable | null> => heldOf(spec.id).answer;

/** Why a graph shows nothing or nothing new, in words; "" otherwise. */
export const problemOf = (spec: GraphSpec): Signal<string> => heldOf(spec.id).problem;

/** Whether a newer answer is on its way. */
export const waitsOf = (spec: GraphSpec): Signal<boolean> => heldOf(spec.id).waits;

/** What a graph asks for: the parameters of /query. */
export function wordsOf(spec: GraphSpec): Words {
	const span = spanOf(spec);
	const interval = columnLength(spec, span);
	const { from, until } = snapped(reached(spec, span), interval);
	const { source } = spec;
	const statistic = askedOf(spec);
	const { recording } = sheet.value;
	// a clock that begins at 0 has no moment before it, though the page shows some room there
	const first = from < 0n ? 0n : from;
	const last = until > first ? until : first + BigInt(interval);
	const time = { from: String(first), to: String(last), interval: `${interval}ns` };
	return { recording, statistic, source, ...time, top: TOP, drawn: drawnOf(spec) };
}

/** The requested time: the shown one, and during a replay also the next part, in whole steps so that the question rarely changes. */
function reached(spec: GraphSpec, span: Span): Span {
	const step = spec.synced ? ahead.value : 0;
	if (step === 0) return span;
	return { from: Math.floor(span.from / step) * step, until: Math.ceil(span.until / step + 1) * step };
}

/** The same without percentiles and mean where these are not shown. */
const questionOf = (spec: GraphSpec): Words => ({ ...wordsOf(spec), lines: spec.overlays ? null : "false" });

/** What a graph asks for but for the moments: the same while it only follows. */
function formOf(spec: GraphSpec): string {
	const { from: _, to: __, ...rest } = questionOf(spec);
	const { time } = sheet.value;
	return question("", { ...rest, live: spec.synced && "live" in time ? time.live : null });
}

/** Keep all graphs answered, by the stream as far as they follow what is recorded; what is returned ends it. */
export function feed(): () => void {
	const ends = [effect(renew), following(() => untracked(renew))];
	return () => {
		for (const end of ends) end();
	};
}

/** Request all graphs again, whatever was requested before. */
export function askAnew(): void {
	forgetAsked();
	untracked(renew);
}

/** Request each graph with a changed question. */
function renew(): void {
	const { graphs, recording } = sheet.value;
	keepOnly(new Set(graphs.map((each) => each.id)));
	if (!recording) return;
	for (const spec of graphs) {
		const held = heldOf(spec.id);
		const live = streamedSeconds(spec);
		const key =
			live > 0 ? question("live", { recording, statistic: askedOf(spec), live }) : question("query", questionOf(spec));
		const about = question("", { recording, statistic: spec.statistic, source: spec.source });
		const other = held.about !== about;
		const form = formOf(spec);
		if (held.asked === key || (!other && held.form === form && tooSoon(spec, held))) continue;
		Object.assign(held, { asked: key, about, form });
		// the answer of another statistic is useless; that of another time is better than none
		if (other) {
			held.name.value = "";
			held.answer.value = null;
			held.problem.value = "";
			held.stop?.abort();
			held.stop = null;
		}
		schedule(spec.id, held);
	}
}

/** Ask when the graph rests; one question at a time, which is waited for, so that what moves on and on is answered now and then. */
function schedule(id: string, held: Held): void {
	clearTimeout(held.timer);
	if (held.stop) return;
	const now = Date.now();
	if (now - held.at > LATEST) held.moved = now;
	const wait = now - held.at > LATEST ? 0 : Math.max(0, Math.min(REST, held.moved + LATEST - now));
	// at once means before anything is drawn
	if (wait === 0) queueMicrotask(() => void fetchAnswer(id, held));
	else held.timer = setTimeout(() => void fetchAnswer(id, held), wait);
}

/** Whether a graph that follows without the stream was requested so recently that less than a pixel or a column has passed. */
function tooSoon(spec: GraphSpec, held: Held): boolean {
	const { time } = sheet.value;
	if (!spec.synced || !("live" in time) || streamedSeconds(spec) > 0) return false;
	const span = spanOf(spec);
	return (
		held.answer.peek() !== null &&
		held.asked.startsWith("query") &&
		Date.now() - held.at < Math.max(columnLength(spec, span), (span.until - span.from) / PIXELS) / 1e6
	);
}

async function fetchAnswer(id: string, held: Held): Promise<void> {
	const spec = untracked(() => sheet.value.graphs.find((each) => each.id === id));
	if (!spec || held.stop) return;
	const stop = new AbortController();
	const { asked } = held;
	Object.assign(held, { stop, at: Date.now() });
	held.waits.value = true;
	try {
		const answer = await ask<Drawable>(
			"query",
			untracked(() => questionOf(spec)),
			stop.signal,
		);
		if (stop.signal.aborted) return;
		show(held, answer);
		held.name.value = answer.statistic;
	} catch (error) {
		if (!stop.signal.aborted) fail(spec, held, error);
	} finally {
		if (held.stop === stop) {
			held.stop = null;
			held.waits.value = false;
			if (held.asked !== asked && held.asked !== "") schedule(id, held);
		}
	}
}

function fail(spec: GraphSpec, held: Held, error: unknown): void {
	const refused = error instanceof Refusal;
	if (refused) held.problem.value = error.message;
	else unreachable.value = true;
	// what begins to be recorded can be answered later
	const awaited = untracked(() => streamedSeconds(spec)) > 0 && held.name.peek() === "";
	if (refused && error.status !== 503 && !awaited) return;
	held.timer = setTimeout(() => {
		held.asked = "";
		untracked(renew);
	}, AGAIN);
}
