// SPDX-License-Identifier: Apache-2.0
import { computed } from "@preact/signals";
import { facts, type Span, tick, whole } from "../api/worksheet";
import { marks } from "./marks";

/** Time of which nothing is recorded: before and after all that was, and gaps in it. Open ends are infinite. */
export const unrecorded = computed<Span[]>(() => {
	const { gaps, recorded } = marks.value;
	const { from, until } = whole.value;
	const first = Math.min(from, recorded[0]?.from ?? from);
	const last = Math.max(until, recorded.at(-1)?.until ?? until);
	return [{ from: Number.NEGATIVE_INFINITY, until: first }, ...gaps, { from: last, until: Number.POSITIVE_INFINITY }];
});

/** Why nothing is recorded of a moment, in words that follow "nothing"; "" where something may be. */
export function unrecordedWords(moment: number): string {
	const found = unrecorded.peek().find((each) => moment >= each.from && moment < each.until);
	if (!found) return "";
	if (found.from === Number.NEGATIVE_INFINITY) return "is recorded of this time: what there is begins later";
	if (found.until !== Number.POSITIVE_INFINITY) return "was recorded here";
	const live = tick.peek()?.live ?? facts.peek()?.live ?? false;
	return live ? "is recorded yet of this time" : "is recorded of this time: it ended before";
}
