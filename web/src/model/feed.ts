import { effect, type Signal, untracked } from "@preact/signals";
import { ask, type Drawable, question, Refusal, type Words } from "./ask";
import { intervalOf, snapped } from "./columns";
import { following, streamedSeconds, TOP } from "./following";
import { type Held, heldOf, keepOnly, show, unreachable } from "./held";
import { type GraphSpec, sheet, spanOf } from "./worksheet";

/** A graph that moves is asked for when it has rested so long, in ms, and at the latest so long after it began to move. */
const REST = 120;
const LATEST = 500;
/** After so long a question is put again that did not reach the service, or for which it had no time. */
const AGAIN = 2000;

/** What a graph shows: null before the first answer. The last one stays until the next is there. */
export const answerOf = (spec: GraphSpec): Signal<Drawable | null> => heldOf(spec.id).answer;

/** Why a graph shows nothing or nothing new, in words; "" otherwise. */
export const problemOf = (spec: GraphSpec): Signal<string> => heldOf(spec.id).problem;

/** Whether a newer answer is on its way. */
export const waitsOf = (spec: GraphSpec): Signal<boolean> => heldOf(spec.id).waits;

/** What a graph asks for: the parameters of /query. */
export function wordsOf(spec: GraphSpec): Words {
	const span = spanOf(spec);
	const interval = intervalOf(span);
	const { from, until } = snapped(span, interval);
	const { statistic, source } = spec;
	const { recording } = sheet.value;
	const time = { from: String(from), to: String(until), interval: `${interval}ns` };
	return { recording, statistic, source, ...time, top: TOP, drawn: "true" };
}

/** Keep all graphs answered, by the stream as far as they follow what is recorded; what is returned ends it. */
export function feed(): () => void {
	const ends = [effect(renew), following(() => untracked(renew))];
	return () => {
		for (const end of ends) end();
	};
}

/** Ask for each graph whose question is another one than before. */
function renew(): void {
	const { graphs, recording } = sheet.value;
	keepOnly(new Set(graphs.map((each) => each.id)));
	if (!recording) return;
	for (const spec of graphs) {
		const held = heldOf(spec.id);
		const live = streamedSeconds(spec);
		const key =
			live > 0 ? question("live", { recording, statistic: spec.statistic, live }) : question("query", wordsOf(spec));
		if (held.asked === key || tooSoon(spec, held)) continue;
		const about = question("", { recording, statistic: spec.statistic, source: spec.source });
		const other = held.about !== about;
		Object.assign(held, { asked: key, about });
		// what was asked of another statistic is of no use; of another time it is better than nothing
		if (other) {
			held.name.value = "";
			held.stop?.abort();
			held.stop = null;
		}
		schedule(spec.id, held);
	}
}

/** Ask when the graph rests; one question at a time, since one that is given up goes on to cost the service its time. */
function schedule(id: string, held: Held): void {
	clearTimeout(held.timer);
	if (held.stop) return;
	const now = Date.now();
	if (now - held.at > LATEST) held.moved = now;
	const wait = now - held.at > LATEST ? 0 : Math.max(0, Math.min(REST, held.moved + LATEST - now));
	held.timer = setTimeout(() => void fetchAnswer(id, held), wait);
}

/** Whether a graph that follows without the stream was asked for less than a column ago. */
function tooSoon(spec: GraphSpec, held: Held): boolean {
	const { time } = sheet.value;
	if (!spec.synced || !("live" in time) || streamedSeconds(spec) > 0) return false;
	const same = held.answer.peek()?.statistic === spec.statistic && held.asked.startsWith("query");
	return same && Date.now() - held.at < intervalOf(spanOf(spec)) / 1e6;
}

async function fetchAnswer(id: string, held: Held): Promise<void> {
	const spec = untracked(() => sheet.value.graphs.find((each) => each.id === id));
	if (!spec) return;
	const stop = new AbortController();
	const { asked } = held;
	Object.assign(held, { stop, at: Date.now() });
	held.waits.value = true;
	try {
		const answer = await ask<Drawable>(
			"query",
			untracked(() => wordsOf(spec)),
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
	if (refused) {
		held.problem.value = error.message;
		if (held.answer.peek()?.statistic !== spec.statistic) held.answer.value = null;
	} else unreachable.value = true;
	if (refused && error.status !== 503) return;
	held.timer = setTimeout(() => {
		held.asked = "";
		untracked(renew);
	}, AGAIN);
}
