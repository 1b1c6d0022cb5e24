// SPDX-License-Identifier: Apache-2.0
import { computed } from "@preact/signals";
import { facts, type Span, tick, whole } from "../api/worksheet";
import { busyTimes, marks } from "./marks";

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

type Spans = readonly Readonly<[number, number]>[];
let known: { idle: Spans; runs: Span[] | null; origin: number; found: Spans } | null = null;

/** Spans without I/O within the runs of a study, in ns since the origin. Pauses between runs are left out: no I/O is expected there. */
export function idleInRuns(idle: Spans, origin: number): Spans {
	const runs = busyTimes.peek();
	if (runs === null || idle.length === 0) return idle;
	if (known && known.idle === idle && known.runs === runs && known.origin === origin) return known.found;
	const found = common(idle, runs, origin);
	known = { idle, runs, origin, found };
	return found;
}

/** What spans, in ns since the origin, have in common with times on the recording's clock. */
export function common(spans: Spans, times: readonly Span[], origin: number): [number, number][] {
	return spans.flatMap(([from, to]) =>
		times.flatMap((time): [number, number][] => {
			const [first, last] = [Math.max(from, time.from - origin), Math.min(to, time.until - origin)];
			return last > first ? [[first, last]] : [];
		}),
	);
}
