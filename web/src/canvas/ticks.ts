// SPDX-License-Identifier: Apache-2.0
/**
 * Marks on an axis of nanoseconds or bytes, and single values in readable units. Python has the same rules for pictures;
 * `tests/vectors/heatmap.json` holds both to them.
 */
export type Unit = "ns" | "B" | "";

/** Distance of the marks of a high axis at least, in px. */
const TICK_PX = 48;

/** The unit of what a map's cells hold; counts have none. */
export const UNITS = { count: "", time: "ns", bytes: "B" } as const satisfies Record<string, Unit>;

export interface Tick {
	value: number;
	label: string;
}

const LADDERS: Record<Unit, [string, number][]> = {
	ns: [
		["ns", 1],
		["µs", 1e3],
		["ms", 1e6],
		["s", 1e9],
	],
	B: ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].map((symbol, power) => [symbol, 1024 ** power]),
	"": [["", 1]],
};
const LONG: [string, number][] = [
	["min", 60e9],
	["h", 3600e9],
	["d", 86400e9],
];
const FACTORS = [1, 2, 5];
const SECONDS = [1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1e9);
const MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map((minutes) => minutes * 60e9);

/** A value in its readable unit: 45300 ns is `45.3 µs`. */
export function quantity(value: number, unit: Unit, digits = 4): string {
	const ladder = LADDERS[unit];
	const [symbol, scale] = ladder.findLast(([, size]) => Math.abs(value) >= size) ?? ladder[0] ?? ["", 1];
	return `${written(value / scale, digits)} ${symbol}`.trimEnd();
}

/** A share with two digits. */
export const percent = (share: number): string => `${quantity(100 * share, "", 2)} %`;

// one format for all: toLocaleString makes a new one for each number
const ENGLISH = new Intl.NumberFormat("en");

/** A whole number in groups of three. */
export const thousands = (count: number): string => ENGLISH.format(count).replaceAll(",", " ");

/** A number of five digits and more in groups of three. */
export const grouped = (number: string): string =>
	number.replace(/^-?\d{5,}/, (digits) => digits.replaceAll(/\B(?=(\d{3})+$)/g, " "));

/** Marks that a vertical axis has room for: `usual`, or more on a high screen. */
export const mostTicks = (height: number, usual: number): number => Math.max(usual, Math.floor(height / TICK_PX));

/** At most `most` marks at round multiples, all in one unit. */
export function linearTicks(low: number, high: number, most: number, unit: Unit): Tick[] {
	if (!(high > low)) return [];
	const fits = (step: number) => Math.floor(high / step) - Math.ceil(low / step) < most;
	const step = steps(unit, (high - low) / Math.max(1, most)).find(fits);
	if (step === undefined) return [];
	const [symbol, scale] = unitOf(step, Math.max(Math.abs(low), Math.abs(high)), unit);
	const ticks: Tick[] = [];
	for (let number = Math.ceil(low / step); number <= Math.floor(high / step); number++) {
		ticks.push({ value: number * step, label: `${written((number * step) / scale, 9)} ${symbol}`.trimEnd() });
	}
	return ticks;
}

/**
 * At most `most` marks at powers of ten (of two for bytes), finer ones between where there is room; each in its own unit. Where not
 * every power has room, that below `at` has.
 */
export function logTicks(low: number, high: number, most: number, unit: Unit, at = 1): Tick[] {
	if (!(high > low)) return [];
	const from = Math.max(low, 0.5);
	const base = unit === "B" ? 2 : 10;
	const log = (value: number) => (base === 2 ? Math.log2(value) : Math.log10(value));
	// an axis that has sizes of 0 begins below a byte, and nothing is of half a byte
	const first = Math.max(unit === "B" ? 0 : -1, Math.ceil(log(from) - 1e-9));
	const last = Math.floor(log(high) + 1e-9);
	const exponents = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
	let values = exponents.map((power) => base ** power);
	if (base === 10) {
		const fine = [first - 1, ...exponents].flatMap((power) => FACTORS.map((factor) => factor * 10 ** power));
		const shown = fine.filter((value) => from <= value && value <= high);
		if (shown.length <= most) values = shown;
	}
	let stride = 1;
	const anchor = Math.floor(log(at) + 1e-9);
	const every = (step: number) => exponents.filter((power) => (power - anchor) % step === 0);
	while (every(stride).length > most) stride++;
	if (stride > 1) values = every(stride).map((power) => base ** power);
	if (values.length < 2) return linearTicks(from, high, most, unit);
	return values.map((value) => ({ value, label: quantity(value, unit) }));
}

function steps(unit: Unit, least: number): number[] {
	if (unit === "B") {
		const power = Math.floor(Math.log2(Math.max(least, 1)));
		return Array.from({ length: 4 }, (_, i) => 2 ** (Math.max(0, power) + i));
	}
	const decades = (from: number, to: number, scale = 1) =>
		Array.from({ length: to - from }, (_, i) => FACTORS.map((factor) => factor * 10 ** (from + i) * scale)).flat();
	const more = unit === "" ? decades(9, 19) : [...SECONDS, ...MINUTES, ...decades(0, 5, 86400e9)];
	return [...decades(0, 9), ...more].filter((step) => step >= least * 0.999);
}

function unitOf(step: number, high: number, unit: Unit): [string, number] {
	const short = { ns: 100, B: 4, "": 1 }[unit];
	const ladder = LADDERS[unit].filter(([, scale]) => scale <= high && (step * short) % scale === 0);
	const long = unit === "ns" ? LONG.filter(([, scale]) => scale <= high && step % scale === 0) : [];
	return [...ladder, ...long].at(-1) ?? LADDERS[unit][0] ?? ["", 1];
}

/** Significant digits without trailing zeros; never an exponent. */
function written(value: number, digits: number): string {
	if (value === 0) return "0";
	const places = Math.min(100, Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value)))));
	const text = value.toFixed(places);
	return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}
