import type { DrawnMap, Problem, SeriesAnswer, StackAnswer, Tick } from "../../generated/api";

/** What is drawn: numbers over time, one or several, or a heat map. */
export type Drawable = SeriesAnswer | StackAnswer | DrawnMap;

type Words = Record<string, string | number | string[]>;

/** An address of the service. */
export function address(path: string, words: Words): string {
	const query = new URLSearchParams();
	for (const [name, value] of Object.entries(words)) {
		for (const each of Array.isArray(value) ? value : [value]) query.append(name, String(each));
	}
	return `/api/v1/${path}?${query}`;
}

/** Ask once; a refusal becomes an error with the service's own words. */
export async function ask<T>(path: string, words: Words = {}): Promise<T> {
	const response = await fetch(address(path, words), { headers: { accept: "application/json" } });
	if (response.status === 401) throw new Error("The token has changed: open the address that iolab printed.");
	const found: unknown = await response.json();
	if (!response.ok) throw new Error(inWords(found as Problem));
	return found as T;
}

/** Follow a recording until what is returned is called. */
export function follow(
	words: Words,
	heard: {
		tick: (tick: Tick) => void;
		answer: (answer: Drawable) => void;
		problem: (words: string) => void;
		lost: (gone: boolean) => void;
	},
): () => void {
	const source = new EventSource(address("stream", words));
	const on = <T>(name: string, take: (data: T) => void) =>
		source.addEventListener(name, (event) => take(JSON.parse((event as MessageEvent<string>).data) as T));
	on<Tick>("tick", heard.tick);
	on<Drawable>("answer", heard.answer);
	on<Problem>("problem", (problem) => heard.problem(inWords(problem)));
	source.onopen = () => heard.lost(false);
	source.onerror = () => heard.lost(true);
	return () => source.close();
}

function inWords(problem: Problem): string {
	return problem.hint ? `${problem.error}; ${problem.hint}` : problem.error;
}
