// SPDX-License-Identifier: Apache-2.0
import { SECOND, type Span } from "./worksheet";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const LONG = [1, 2, 5, 10, 15, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE]
	.concat([HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 7 * DAY, 30 * DAY])
	.map((seconds) => seconds * SECOND);
/** Maximum number of columns of a graph, and of one that shows less than a minute. */
const MOST = 3600;
const FINE = 600;

/** What a graph has room for: its plot in pixels, and the I/Os a second that fill it. `enough`: I/Os of a column, on average. */
export interface Room {
	pixels: number;
	perSecond: number;
	enough: number;
}

/** Pixels of a column at most. */
const WIDEST = 3;
/** Columns at least, where a column needs many I/Os. */
const FEWEST = 30;

/**
 * The length of a column, in ns. Without `room`: a second from a minute's span on, a round longer or shorter one where that fits better.
 * With it: so short that a column is at most 3 pixels wide, as far as there are enough I/Os, and never longer than without.
 */
export function intervalOf(span: Span, room: Room | null = null): number {
	const usual = usualOf(span);
	if (!room) return usual;
	const length = span.until - span.from;
	const seen = roundDown((WIDEST * length) / room.pixels);
	const filled = roundUp((room.enough * SECOND) / room.perSecond);
	const longest = room.enough > SOME ? Math.max(usual, roundDown(length / FEWEST)) : usual;
	return Math.min(longest, Math.max(seen, filled));
}

/** I/Os of a column that are enough for a cell of a map, for a number that does not flicker, and for percentiles. */
export const FEW = 20;
export const SOME = 100;
export const MANY = 1000;

const SHORT = Array.from({ length: 9 }, (_, decade) => [1, 2, 5].map((step) => step * 10 ** decade)).flat();
const ROUND = [...SHORT, ...LONG];
const roundDown = (length: number): number => ROUND.findLast((each) => each <= length) ?? 1;
const roundUp = (length: number): number => ROUND.find((each) => each >= length) ?? 365 * DAY * SECOND;

/**
 * The shortest round column that is not shorter than `least`, in ns. Columns of less than a second need `enough` I/Os, of so many
 * a second; null: only whole seconds are known.
 */
export function filledInterval(least: number, enough: number, perSecond: number | null): number {
	const seconds = LONG.find((each) => each >= least) ?? 365 * DAY * SECOND;
	if (perSecond === null || seconds > SECOND) return seconds;
	return Math.min(seconds, Math.max(roundUp(least), roundUp((enough * SECOND) / perSecond)));
}

function usualOf(span: Span): number {
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
