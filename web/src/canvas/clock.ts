// SPDX-License-Identifier: Apache-2.0
import { zoneOffset } from "../lib/zone";
import { linearTicks, type Tick } from "./ticks";

const [MS, S, MIN, H, D] = [1e6, 1e9, 60e9, 3600e9, 86400e9];
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500]
	.map((ms) => ms * MS)
	.concat([1, 2, 5, 10, 15, 30].map((seconds) => seconds * S))
	.concat([1, 2, 5, 10, 15, 30].map((minutes) => minutes * MIN))
	.concat([1, 2, 3, 6, 12].map((hours) => hours * H))
	.concat([1, 2, 7, 14, 28, 91, 364].map((days) => days * D));
/** Later than this (March 1973) a time in ns counts from 1970. */
export const EPOCH = 1e17;

/**
 * At most `most` marks on the time from `from` to `to`, which are ns since `origin`. Where that counts from 1970 they are moments of
 * the day (UTC, as the command line has it, unless local time is chosen), each midnight with its date; otherwise time passed since `zero`.
 */
export function timeTicks(origin: number, from: number, to: number, most: number, zero = 0): Tick[] {
	if (origin < EPOCH) return passed(from, to, most, zero - origin, "");
	// finer than the precision of the double: time passed since the whole second
	if ((to - from) / most < MS / 2) return passed(from, to, most, Math.floor((origin + from) / S) * S - origin, "+");
	const step = STEPS.find((each) => (to - from) / each < most) ?? 364 * D;
	// days and hours begin by the clock of the zone
	const offset = zoneOffset((origin + from) / MS) * MS;
	const first = Math.ceil((origin + from + offset) / step);
	const last = Math.floor((origin + to + offset) / step);
	return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => {
		const value = (first + i) * step;
		return {
			value: value - offset - origin,
			label: step >= D || value % D === 0 ? day(value) : timeOfDay(value, step),
		};
	});
}

function passed(from: number, to: number, most: number, base: number, sign: string): Tick[] {
	return linearTicks(from - base, to - base, most, "ns").map(({ value, label }) => ({
		value: value + base,
		label: `${sign}${label}`,
	}));
}

/** The day on which an axis begins, "" where no day is known. */
export const dayOf = (time: number): string => (time < EPOCH ? "" : day(time + zoneOffset(time / MS) * MS));

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function day(value: number): string {
	const date = new Date(Math.round(value / MS));
	return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()] ?? ""}`;
}

function timeOfDay(value: number, step: number): string {
	const text = new Date(Math.round(value / MS)).toISOString().slice(11, 23);
	return text.slice(0, step < S ? 12 : step < MIN ? 8 : 5);
}
