import { valuesOf } from "../../canvas/lines";
import type { Drawable } from "../../model/ask";
import { wordsOf } from "../../model/feed";
import { unreachable } from "../../model/held";
import { inlined } from "../../model/offline";
import type { GraphSpec, Span } from "../../model/worksheet";

/** The time that an answer is of; null where it holds nothing. */
export function spanOfAnswer(answer: Drawable): Span | null {
	const [columns, interval] =
		answer.kind === "map"
			? [answer.group?.columns ?? 0, answer.group?.interval_ns ?? 0]
			: [valuesOf(answer).length, answer.interval_ns];
	return columns > 0 ? { from: answer.t0_ns, until: answer.t0_ns + columns * interval } : null;
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
