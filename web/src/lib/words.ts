// SPDX-License-Identifier: Apache-2.0
import { quantity, thousands } from "../canvas/ticks";

/** "2026-03-01 12:00", in UTC; "" where the time is not known. */
export const dateWords = (ns: number | null): string =>
	ns === null ? "" : new Date(ns / 1e6).toISOString().slice(0, 16).replace("T", " ");

/** A value of a metric with its unit. */
export function valueWords(value: number | null, unit: string): string {
	if (value === null) return "no value";
	if (unit === "s") return quantity(1e9 * value, "ns");
	if (unit === "B" || unit === "B/s") return quantity(value, "B") + unit.slice(1);
	if (unit === "1") return quantity(value, "");
	return `${quantity(value, "")} ${unit}`.trim();
}

/** "+12.3", with a minus sign that is as wide as a digit. */
export const signedWords = (value: number): string =>
	`${value < 0 ? "−" : "+"}${Number(Math.abs(value).toPrecision(3))}`;

/** The levels of a cell: "rw=randread, jobs=4"; "all" without factors. */
export const cellWords = (variant: string, factors: Record<string, unknown>): string =>
	[variant, ...Object.entries(factors).map(([name, level]) => `${name}=${level}`)].filter(Boolean).join(", ") || "all";

/** "1 study", "2 studies". */
export const countWords = (count: number, singular: string, plural = `${singular}s`): string =>
	`${thousands(count)} ${count === 1 ? singular : plural}`;
