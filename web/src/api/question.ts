// SPDX-License-Identifier: Apache-2.0
import type { DrawnMap, PercentilesAnswer, SeriesAnswer, StackAnswer } from "../generated/api";

/** What is drawn: numbers over time, one or several, or a heat map. */
export type Drawable = SeriesAnswer | StackAnswer | DrawnMap | PercentilesAnswer;

/** Parameters of a question; those that are null or "" are left out, lists are repeated. */
export type Words = Record<string, string | number | null | undefined | readonly string[]>;

/** Moments in ns are sent whole. */
const plain = (value: string | number) =>
	typeof value === "number" && Math.abs(value) > 2 ** 53 ? String(BigInt(Math.round(value))) : String(value);

/** The service's own words of why there is no answer, with the status. */
export class Refusal extends Error {
	constructor(
		readonly status: number,
		message: string,
	) {
		super(message);
	}
}

/** A question as path and query, in one order: the name under which an offline page holds its answer. */
export function question(path: string, words: Words): string {
	const query = new URLSearchParams();
	for (const name of Object.keys(words).sort()) {
		const value = words[name];
		if (value === null || value === undefined || value === "") continue;
		for (const each of typeof value === "object" ? value : [plain(value)]) query.append(name, each);
	}
	const text = query.toString();
	return text ? `${path}?${text}` : path;
}
