// SPDX-License-Identifier: Apache-2.0
import { computed } from "@preact/signals";
import type { RecordingFacts, Tick } from "../generated/api";
import { unreadWords } from "./client";
import { facts, recordings, tick } from "./worksheet";

/** Why the shown recording can't be read, with its name; "" if it can. */
export const trouble = computed(() => {
	const { name = "", problem = "" } = facts.value ?? {};
	return problem && unreadWords(name, problem);
});

/** Replace the known recordings by those served now; one that can't be read now keeps its other data. */
export function learn(found: readonly RecordingFacts[]): void {
	recordings.value = found.map((each) => {
		const known = recordings.peek().find(({ name }) => name === each.name);
		return each.problem && known ? { ...known, problem: each.problem } : each;
	});
}

/** Set the state of a recording; of one that can't be read now, only the reason. */
export function heardTick(now: Tick): void {
	if (!now.problem) tick.value = now;
	const known = recordings.peek().find(({ name }) => name === now.recording);
	if (!known) return;
	// one that can't be read now keeps its state; one that is recorded again is live again
	const live = now.problem !== "" ? known.live : now.live;
	if (live === known.live && now.problem === known.problem) return;
	recordings.value = recordings
		.peek()
		.map((each) => (each === known ? { ...known, live, problem: now.problem } : each));
}
