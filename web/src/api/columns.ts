// SPDX-License-Identifier: Apache-2.0
import { SECOND, type Span } from "./worksheet";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const LONG = [1, 2, 5, 10, 15, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE]
	.concat([HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 7 * DAY, 30 * DAY])
	.map((seconds) => seconds * SECOND);
/** Columns at most of a graph, and of one that shows less than a minute. */
const MOST = 3600;
const FINE = 600;

/** The length of a column, in ns: a second from a minute's span on, a round longer or shorter one where that fits better. */
export function intervalOf(span: Span): number {
	const length = span.until - span.from;
	if (length >= MINUTE * SECOND) return LONG.find((each) => length <= MOST * each) ?? 365 * DAY * SECOND;
	for (let decade = 1; ; decade *= 10)
		for (const step of [1, 2, 5]) if (length <= FINE * step * decade) return Math.min(SECOND, step * decade);
}

/** The span in whole columns, exact: a moment since 1970 in ns has more digits than a number holds. */
export function snapped(span: Span, interval: number): { from: bigint; until: bigint } {
	const step = BigInt(interval);
	const [from, until] = [BigInt(Math.floor(span.from)), BigInt(Math.ceil(span.until))];
	return { from: below(from, step), until: below(until + step - 1n, step) };
}

/** The last multiple that is not above. */
function below(value: bigint, step: bigint): bigint {
	const rest = value % step;
	return value - (rest < 0n ? rest + step : rest);
}
