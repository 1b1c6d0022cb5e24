// SPDX-License-Identifier: Apache-2.0
import { type Signal, signal } from "@preact/signals";
import type { Drawable } from "./question";

/** The state of a graph: its answer or why there is none, and its question. */
export interface Held {
	answer: Signal<Drawable | null>;
	problem: Signal<string>;
	waits: Signal<boolean>;
	asked: string;
	/** The recording, statistic and source of that. */
	about: string;
	/** The question without its moments: what follows and moves stays of one form. */
	form: string;
	/** When it began to move, in ms. */
	moved: number;
	/** Time of its request, in ms. */
	at: number;
	/** The name under which the stream answers, "" until the service has accepted the statistic. */
	name: Signal<string>;
	stop: AbortController | null;
	timer: ReturnType<typeof setTimeout> | undefined;
}

/** Whether the service can't be reached; the page continues when it can. */
export const unreachable = signal(false);

/** Why the service is there but takes no stream of this page, in words; "" otherwise. */
export const refusal = signal("");

const all = new Map<string, Held>();

/** What is held of a graph, by its id. */
export function heldOf(id: string): Held {
	const known = all.get(id);
	if (known) return known;
	const made: Held = {
		answer: signal(null),
		problem: signal(""),
		waits: signal(false),
		asked: "",
		about: "",
		form: "",
		moved: 0,
		at: 0,
		name: signal(""),
		stop: null,
		timer: undefined,
	};
	all.set(id, made);
	return made;
}

/** Put an answer on its graph. */
export function show(held: Held, answer: Drawable): void {
	unreachable.value = false;
	held.problem.value = "";
	held.answer.value = answer;
}

/** How often everything was requested again. */
export const forgotten = signal(0);

/** Request everything again. */
export function forgetAsked(): void {
	for (const each of all.values()) each.asked = "";
	forgotten.value++;
}

/** Drop what is held of all graphs but these. */
export function keepOnly(ids: ReadonlySet<string>): void {
	for (const [id, each] of all) {
		if (ids.has(id)) continue;
		clearTimeout(each.timer);
		each.stop?.abort();
		all.delete(id);
	}
}
