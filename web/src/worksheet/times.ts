// SPDX-License-Identifier: Apache-2.0
import { SECOND, type Span } from "../api/worksheet";
import { EPOCH } from "../canvas/clock";
import { zoned, zoneWords } from "../lib/zone";

/** Lengths of time that have a button, in seconds. */
export const UNITS = [
	{ name: "minute", short: "1 min", seconds: 60 },
	{ name: "hour", short: "1 h", seconds: 3600 },
	{ name: "day", short: "1 d", seconds: 86_400 },
	{ name: "week", short: "1 w", seconds: 7 * 86_400 },
	{ name: "month", short: "1 mo", seconds: 30 * 86_400 },
] as const;

/** "an hour". */
export const oneOf = (unit: string): string => `${unit === "hour" ? "an" : "a"} ${unit}`;

/** The least and the longest that is shown, in ns. */
const LEAST = 1e6;
const LONGEST = 10 * 366 * 86_400 * SECOND;

export const lengthOf = (span: Span): number => span.until - span.from;
export const middleOf = (span: Span): number => span.from + lengthOf(span) / 2;

/** Earlier (share < 0) or later by a share of its length; it stops where nothing of what was recorded would be left. */
export function moved(span: Span, whole: Span, share: number): Span {
	const length = lengthOf(span);
	const from = Math.min(Math.max(span.from + share * length, whole.from - length / 2), whole.until - length / 2);
	return { from, until: from + length };
}

/** Longer (factor > 1) or shorter, keeping `about` in its place. */
export function zoomed(span: Span, factor: number, about = middleOf(span)): Span {
	const length = Math.min(LONGEST, Math.max(LEAST, lengthOf(span) * factor));
	const share = (about - span.from) / lengthOf(span);
	return { from: about - share * length, until: about + (1 - share) * length };
}

/** Of that length around a moment. */
export const around = (moment: number, length: number): Span => ({
	from: moment - length / 2,
	until: moment + length / 2,
});

/** How many units the next wish for a unit (in seconds) shows: one more than now, or one where something else is shown. */
export function nextMultiple(length: number, unit: number): number {
	const times = length / SECOND / unit;
	const next = UNITS.find((each) => each.seconds > unit)?.seconds ?? Number.POSITIVE_INFINITY;
	const multiple = Math.round(times) >= 1 && Math.abs(times - Math.round(times)) < 1e-6 && times * unit < next;
	return multiple ? Math.round(times) + 1 : 1;
}

/** Seconds from which on a length is shown in two units. */
const TWO = 120;
/** From so many on, a unit is too small to be read. */
const TOO_MANY: Readonly<Record<string, number>> = { minute: 120, hour: 48 };

/** A length of time in words, such as "2 hours", "18 minutes 12 seconds" or "20 days 18 hours". */
export function lengthWords(ns: number): string {
	const seconds = ns / SECOND;
	const whole = (unit: number) => Math.abs(seconds - Math.round(seconds / unit) * unit) < Math.min(0.5, seconds / 1000);
	const unit = UNITS.toReversed().find((unit) => {
		const count = Math.round(seconds / unit.seconds);
		return count > 0 && count < (TOO_MANY[unit.name] ?? Number.POSITIVE_INFINITY) && whole(unit.seconds);
	});
	if (unit) return plural(Math.round(seconds / unit.seconds), unit.name);
	if (seconds >= TWO) return twoUnits(Math.round(seconds));
	if (seconds >= 1) return plural(round(seconds), "second");
	return seconds >= 1e-3 ? `${round(seconds * 1e3)} ms` : `${round(seconds * 1e6)} µs`;
}

/** How far another time begins from the time that is shown, in ns that it is earlier. */
export const shiftWords = (shift: number): string =>
	shift === 0 ? "the same time" : `${lengthWords(Math.abs(shift))} ${shift > 0 ? "earlier" : "later"}`;

/** A moment: by the clock of the zone if it counts from 1970, otherwise in seconds from the start. `step`: the resolution in ns. */
export function momentWords(ns: number, step = SECOND, origin = 0): string {
	const digits = step >= SECOND ? 0 : step >= SECOND / 1000 ? 3 : 6;
	if (ns < EPOCH) return `${((ns - origin) / SECOND).toFixed(digits)} s`;
	const date = zoned(Math.floor(ns / 1e6)).toISOString();
	const below = digits === 6 ? String(Math.floor(ns / 1e3) % 1000).padStart(3, "0") : "";
	return `${date.slice(0, 10)} ${date.slice(11, digits === 0 ? 19 : 23)}${below}`;
}

/** A span by the clock; a common day is shown once. `steps`: the number of parts that its digits distinguish. */
export function spanWords(span: Span, origin = 0, steps = 600): string {
	const step = lengthOf(span) / steps;
	const [from, until] = [momentWords(span.from, step, origin), momentWords(span.until, step, origin)];
	const same = span.from >= EPOCH && from.slice(0, 10) === until.slice(0, 10);
	return `${from} – ${same ? until.slice(11) : until}${span.from >= EPOCH ? ` ${zoneWords(span.from / 1e6)}` : ""}`;
}

/** Whole seconds in the largest unit up to days that they fill, and the rest in the next smaller one. */
function twoUnits(seconds: number): string {
	const place = UNITS.findLastIndex((unit) => unit.seconds <= 86_400 && seconds >= unit.seconds);
	const [large, small] = [UNITS[place] ?? UNITS[0], UNITS[place - 1] ?? { name: "second", seconds: 1 }];
	const rest = Math.round((seconds % large.seconds) / small.seconds);
	const whole = Math.floor(seconds / large.seconds);
	// a rest that fills the larger unit is one more of it
	if (rest * small.seconds >= large.seconds) return plural(whole + 1, large.name);
	return [plural(whole, large.name), rest > 0 && plural(rest, small.name)].filter(Boolean).join(" ");
}

const round = (value: number) => Number(value.toPrecision(4));
const plural = (count: number, unit: string) => `${count} ${unit}${count === 1 ? "" : "s"}`;
