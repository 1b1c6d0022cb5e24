// SPDX-License-Identifier: Apache-2.0
import type { Span } from "../../api/worksheet";
import { type Numbered, valuesOf } from "../../canvas/lines";

/** A moment since 1970 in ns is so many ns off at most. */
const OFF = 512;

/** The position of a selected time in an answer: outside, one of its columns, or several columns or a part of one. */
export function placeIn(answer: Numbered, at: Span): number | "outside" | "other" {
	const { t0_ns, interval_ns } = answer;
	const columns = valuesOf(answer).length;
	const [from, until] = [(at.from - t0_ns) / interval_ns, (at.until - t0_ns) / interval_ns];
	const near = (one: number, other: number) => Math.abs(one - other) <= OFF / interval_ns;
	const column = Math.round(from);
	if (until <= 0 || from >= columns || near(until, 0) || near(from, columns)) return "outside";
	return near(from, column) && near(until, column + 1) ? column : "other";
}
