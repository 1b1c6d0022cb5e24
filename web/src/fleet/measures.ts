// SPDX-License-Identifier: Apache-2.0
import { quantity, thousands } from "../canvas/ticks";
import type { FleetAnswer, FleetHost } from "../generated/api";

export type Measure = FleetAnswer["measure"];
type Value = number | null;

interface Facts {
	title: string;
	/** The statistic that a worksheet opens with. */
	graph: string;
	/** Whether colours go by the logarithm. */
	isLog: boolean;
	/** The range of the colours that does not depend on the values. */
	range?: [number, number];
	words: (value: number) => string;
}

const rounded = (value: number): string => (value < 10 ? quantity(value, "", 3) : thousands(Math.round(value)));

export const MEASURES: Readonly<Record<Measure, Facts>> = {
	p99: {
		title: "p99 latency",
		graph: "io.ops[latency]",
		isLog: true,
		words: (value) => quantity(value, "ns", 3),
	},
	iops: { title: "IOPS", graph: "io.ops", isLog: false, words: (value) => `${rounded(value)}/s` },
	utilization: {
		title: "Utilization",
		graph: "io.utilization",
		isLog: false,
		range: [0, 1],
		words: (value) => `${quantity(100 * value, "", 3)} %`,
	},
	losses: { title: "Lost records", graph: "io.ops", isLog: true, words: rounded },
};
export const NAMES = Object.keys(MEASURES) as Measure[];

export const isMeasure = (text: string | null): text is Measure => text !== null && text in MEASURES;

/** The values between which colours run: low may equal high. Null where no host has a value. */
export function colourRange(measure: Measure, hosts: readonly Pick<FleetHost, "values">[]): [number, number] | null {
	const { range, isLog } = MEASURES[measure];
	let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
	let some = false;
	for (const { values } of hosts) {
		for (const value of values) {
			some ||= value !== null;
			if (value === null || (isLog && value <= 0)) continue;
			low = Math.min(low, value);
			high = Math.max(high, value);
		}
	}
	if (!some) return null;
	if (range) return range;
	if (high < low) return [1, 1];
	return [isLog ? low : 0, high];
}

/** The place of a value between 0 and 1 in the colours; null for no colour: without a value, and nothing where colours are logarithmic. */
export function levelIn(measure: Measure, [low, high]: readonly [number, number], value: Value): number | null {
	const { isLog } = MEASURES[measure];
	if (value === null || (isLog && value <= 0)) return null;
	if (high <= low) return 1;
	const level = isLog ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
	return Math.min(1, Math.max(0, level));
}

/** The value at a place of the colours. */
export function valueAt(measure: Measure, [low, high]: readonly [number, number], level: number): number {
	return MEASURES[measure].isLog ? low * (high / low) ** level : low + level * (high - low);
}

/** The largest value of a host; null without one. */
export function largest(values: readonly Value[]): Value {
	let most: Value = null;
	for (const value of values) if (value !== null && (most === null || value > most)) most = value;
	return most;
}
