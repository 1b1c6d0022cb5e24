// SPDX-License-Identifier: Apache-2.0
import type { RecordingFacts, StatisticFacts } from "../generated/api";
import { question, Refusal, type Words } from "./question";
import type { Worksheet } from "./worksheet";

/** A worksheet in one file: what it shows, and the answers to everything that it asks, by path and sorted query. */
export interface Inlined {
	worksheet: Worksheet;
	recordings: RecordingFacts[];
	statistics: StatisticFacts[];
	answers: Record<string, unknown>;
}

let found: Inlined | null | undefined;

/** The answers in this page; null if it has a service. */
export function inlined(): Inlined | null {
	if (found === undefined) {
		const text = typeof document === "undefined" ? null : document.getElementById("iolab-answers")?.textContent;
		found = text ? (JSON.parse(text) as Inlined) : null;
	}
	return found;
}

/** The answer in this page; a refusal if it has none. */
export function answerHeld<T>(path: string, words: Words): T {
	const answers = inlined()?.answers ?? {};
	const name = heldName(question(path, words));
	const near = Object.keys(answers).find((each) => timeless(each) === timeless(name));
	// data over time can be zoomed, data of a single time can't
	const overTime = words.drawn === "true" || path === "layers";
	const found = answers[name] ?? (overTime && near ? answers[near] : undefined);
	if (found === undefined)
		throw new Refusal(0, near ? OTHER_TIME : "This file holds no answer to that: ask where it was made.");
	return found as T;
}

/** The length of the columns of a statistic in this page, in ns; 0 if it has none. */
export function heldInterval(statistic: string): number {
	for (const name of Object.keys(inlined()?.answers ?? {})) {
		const words = new URLSearchParams(name.split("?")[1] ?? "");
		if (name.startsWith("query?") && words.get("drawn") && words.get("statistic") === statistic)
			return Number.parseInt(words.get("interval") ?? "", 10) || 0;
	}
	return 0;
}

/** The length of the columns of a statistic over the longest time in this page, in ns; 0 if it has none. `drawn`: in which form. */
export function heldOverviewInterval(statistic: string, drawn = ""): number {
	let [interval, longest] = [0, 0];
	for (const name of Object.keys(inlined()?.answers ?? {})) {
		const words = new URLSearchParams(name.split("?")[1] ?? "");
		const length = Number(words.get("to")) - Number(words.get("from"));
		const step = Number.parseInt(words.get("interval") ?? "", 10) || 0;
		const same = words.get("statistic") === statistic && (words.get("drawn") ?? "") === drawn;
		if (name.startsWith("query?") && same && step > 0 && length > longest) [interval, longest] = [step, length];
	}
	return interval;
}

const OTHER_TIME = "The file holds this for the time that was shared only.";

/** The name under which a file holds an answer: maps are in it with their percentiles, whether or not these are shown now. */
export const heldName = (name: string): string => without(name, ["lines"]);

const timeless = (name: string): string => without(name, ["from", "to", "interval"]);

function without(name: string, left: readonly string[]): string {
	const [path, query = ""] = name.split("?");
	const words = new URLSearchParams(query);
	for (const each of left) words.delete(each);
	const rest = words.toString();
	return rest ? `${path}?${rest}` : (path ?? "");
}
