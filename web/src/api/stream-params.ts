// SPDX-License-Identifier: Apache-2.0
import { computed, effect, untracked } from "@preact/signals";
import { forgetAsked, heldOf, refusal, show, unreachable } from "./answer-cache";
import { follow, type Heard } from "./client";
import { inlined } from "./offline";
import { hasPercentiles } from "./painters";
import type { Words } from "./question";
import { columnLength } from "./resolution";
import { heardTick } from "./served";
import { type GraphSpec, MOST, recordings, SECOND, sheet, whole } from "./worksheet";

/** Keys of a breakdown that an answer names; the rest is added up. */
export const TOP = 30;
/** Maximum length of a stream in seconds; a longer graph moves slowly, and is requested periodically. */
const LONGEST = 600;

/** The seconds up to now that the stream has for a graph; 0 if it has none. */
export function streamedSeconds(spec: GraphSpec): number {
	const { time } = sheet.value;
	if (!spec.synced || spec.source || hasPercentiles(spec) || !("live" in time) || time.live > LONGEST) return 0;
	return grows.value ? time.live : 0;
}

/** Whether the stream is open: while the recording is recorded, and while the worksheet follows one that may go on. */
const grows = computed(() => {
	const { recording, time } = sheet.value;
	const served = recordings.value.find((each) => each.name === recording);
	if (inlined() || !served) return false;
	return served.live || ("live" in time && served.kind !== "trace");
});

/** The requests of the stream; while no graph follows, it only ticks. */
const wanted = computed(() => {
	if (!grows.value) return "";
	const { recording, graphs } = sheet.value;
	const followed = graphs.filter((each) => streamedSeconds(each) > 0);
	const names = new Set(followed.map((each) => heldOf(each.id).name.value).filter(Boolean));
	const seconds = followed[0] ? streamedSeconds(followed[0]) : 1;
	const until = whole.peek().until;
	const span = { from: until - seconds * SECOND, until };
	// one stream has one length of columns
	const interval = `${followed.length > 0 ? Math.max(...followed.map((each) => columnLength(each, span))) : SECOND}ns`;
	const lines = followed.some((each) => each.overlays) ? "" : "false";
	return JSON.stringify({ recording, statistic: [...names].sort().slice(0, MOST), seconds, interval, lines });
});

/** Follow the recording by one stream; what is returned ends it. `back` is called when the service is there again. */
export function following(back: () => void): () => void {
	return effect(() => {
		if (!wanted.value) return undefined;
		const words = JSON.parse(wanted.value) as Words;
		const end = follow({ ...words, top: TOP, drawn: "true" }, heard(back));
		return () => {
			refusal.value = "";
			end();
		};
	});
}

function heard(back: () => void): Heard {
	const followed = () => untracked(() => sheet.value.graphs.filter((each) => streamedSeconds(each) > 0));
	return {
		tick: (now) => {
			unreachable.value = false;
			heardTick(now);
		},
		answer: (answer) => {
			for (const spec of followed()) {
				const held = heldOf(spec.id);
				if (held.name.peek() === answer.statistic) show(held, answer);
			}
		},
		problem: (words) => {
			for (const spec of followed()) {
				const held = heldOf(spec.id);
				if (words.startsWith(`${held.name.peek()}: `)) held.problem.value = words;
			}
		},
		lost: (gone) => {
			const again = (unreachable.peek() || refusal.peek() !== "") && !gone;
			unreachable.value = gone;
			refusal.value = "";
			if (!again) return;
			forgetAsked();
			back();
		},
		refused: (words) => {
			refusal.value = words;
		},
	};
}
