// SPDX-License-Identifier: Apache-2.0
import { unreachable } from "../../api/answer-cache";
import { wordsOf } from "../../api/feed";
import { inlined } from "../../api/offline";
import type { Drawable } from "../../api/question";
import type { GraphSpec, Span } from "../../api/worksheet";
import { valuesOf } from "../../canvas/lines";

/** The time that an answer is of; null where that is not known. */
export function spanOfAnswer(answer: Drawable): Span | null {
	// a map and its percentiles have the columns between their first and last I/O alone: what they are of may reach further
	const window = "window" in answer ? answer.window : ([0, valuesOf(answer).length] as const);
	if (!window || window[1] <= window[0]) return null;
	const { t0_ns, interval_ns } = answer;
	return { from: t0_ns + window[0] * interval_ns, until: t0_ns + window[1] * interval_ns };
}

/** Of which time the numbers of an answer are where that is another one than is shown, and no answer of that will come soon: else null. */
export function otherTime(spec: GraphSpec, answer: Drawable | null): Span | null {
	if (!answer || (!inlined() && !unreachable.value)) return null;
	const found = spanOfAnswer(answer);
	const { from, to, interval } = wordsOf(spec);
	if (!found) return null;
	const off = Math.max(Math.abs(Number(from) - found.from), Math.abs(Number(to) - found.until));
	return off > Math.max(Number.parseInt(String(interval), 10), (found.until - found.from) / 50) ? found : null;
}
