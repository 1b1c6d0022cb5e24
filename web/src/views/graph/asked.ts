import { effect, untracked } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { AGAIN, ask, question, Refusal, type Words } from "../../model/ask";

/** What is known of a question. The last answer stays until the next is there, so that nothing jumps. */
export interface Asked<T> {
	found: T | null;
	/** Whether `found` answers another question than the one that is asked now. */
	stale: boolean;
	problem: string;
}

/** An answer with its question, and what that was about. */
export interface Known<T> {
	found: T | null;
	key: string;
	about: string;
	problem: string;
}

export const NOTHING: Known<never> = { found: null, key: "", about: "", problem: "" };

const passes = (error: unknown) => !(error instanceof Refusal) || error.status === 503;

/** The recording, statistic and source that a question is about: an answer about others says nothing about these. */
export const aboutOf = ({ recording, statistic, source }: Words): string =>
	question("", { recording, statistic, source });

/** What is known after an error: one that passes leaves the answer before. */
export function failed<T>(before: Known<T>, error: unknown, key: string, about: string): Known<T> {
	if (passes(error)) return { ...before, problem: "" };
	return { found: null, key, about, problem: (error as Error).message };
}

/** What is known of the question that is asked now: nothing where the answer is about something else. */
export function foundOf<T>(known: Known<T>, words: Words | null): Pick<Asked<T>, "found" | "problem"> {
	if (!words || known.about !== aboutOf(words)) return { found: null, problem: "" };
	return { found: known.found, problem: known.problem };
}

/** Ask, and ask anew when the question changes, one at a time and so many ms apart at least; null asks nothing. */
export function useAsked<T>(path: string, words: Words | null, pace: number): Asked<T> {
	const [asked, setAsked] = useState<Known<T>>(NOTHING);
	const state = useRef({
		key: "",
		busy: false,
		at: 0,
		alive: true,
		timer: 0 as unknown as ReturnType<typeof setTimeout>,
	});
	const key = words ? question(path, words) : "";
	const about = words ? aboutOf(words) : "";
	useEffect(() => {
		const { current } = state;
		current.alive = true;
		return () => {
			current.alive = false;
			clearTimeout(current.timer);
		};
	}, []);
	useEffect(() => {
		const { current } = state;
		const again = () => {
			clearTimeout(current.timer);
			if (!words || current.key === key || current.busy || !current.alive) return;
			current.timer = setTimeout(put, Math.max(0, current.at + pace - Date.now()));
		};
		const put = async () => {
			current.busy = true;
			current.key = key;
			current.at = Date.now();
			const next = await ask<T>(path, words ?? {}).then(
				(found) => () => ({ found, key, about, problem: "" }),
				(error: unknown) => {
					if (passes(error)) {
						current.key = "";
						current.at = Date.now() + AGAIN - pace;
					}
					return (before: Known<T>) => failed(before, error, key, about);
				},
			);
			current.busy = false;
			if (current.alive) setAsked(next);
		};
		if (!words) {
			current.key = "";
			setAsked((before) => (before === NOTHING ? before : NOTHING));
		}
		again();
		// once an answer is there the question may be another one by then
	}, [key, path, asked]);
	return { ...foundOf(asked, words), stale: asked.key !== key };
}

/** A value made from signals that follows them at rest: so many ms after they changed last, and four times that at most. */
export function useRested<T>(make: () => T, wait: number, dependencies: readonly unknown[]): T {
	const [value, setValue] = useState(() => untracked(make));
	useEffect(() => {
		let timer: ReturnType<typeof setTimeout> | undefined;
		let since = 0;
		let first = true;
		const stop = effect(() => {
			const made = make();
			clearTimeout(timer);
			if (first) {
				first = false;
				setValue(() => made);
				return;
			}
			since ||= Date.now();
			timer = setTimeout(
				() => {
					since = 0;
					setValue(() => made);
				},
				Math.max(0, Math.min(wait, since + 4 * wait - Date.now())),
			);
		});
		return () => {
			clearTimeout(timer);
			stop();
		};
	}, dependencies);
	return value;
}
