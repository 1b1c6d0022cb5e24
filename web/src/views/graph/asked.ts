import { effect, untracked } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, question, Refusal, type Words } from "../../model/ask";

/** What is known of a question. The last answer stays until the next is there, so that nothing jumps. */
export interface Asked<T> {
	found: T | null;
	/** Whether `found` answers another question than the one that is asked now. */
	stale: boolean;
	problem: string;
}

const NOTHING = { found: null, key: "", problem: "" };

/** After so many ms a question is put again for which the service was not there, or had no time. */
const AGAIN = 2000;
const passes = (error: unknown) => !(error instanceof Refusal) || error.status === 503;

/** Ask, and ask anew when the question changes, one at a time and so many ms apart at least; null asks nothing. */
export function useAsked<T>(path: string, words: Words | null, pace: number): Asked<T> {
	const [asked, setAsked] = useState<Omit<Asked<T>, "stale"> & { key: string }>(NOTHING);
	const state = useRef({
		key: "",
		busy: false,
		at: 0,
		alive: true,
		timer: 0 as unknown as ReturnType<typeof setTimeout>,
	});
	const key = words ? question(path, words) : "";
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
			const made = await ask<T>(path, words ?? {}).then(
				(found) => ({ found, key, problem: "" }),
				(error: unknown) => {
					if (passes(error)) {
						current.key = "";
						current.at = Date.now() + AGAIN - pace;
					}
					return { found: null, key, problem: passes(error) ? "" : (error as Error).message };
				},
			);
			current.busy = false;
			if (current.alive) setAsked(made);
		};
		if (!words) {
			current.key = "";
			setAsked((before) => (before === NOTHING ? before : NOTHING));
		}
		again();
		// once an answer is there the question may be another one by then
	}, [key, path, asked]);
	const { found, problem } = words ? asked : NOTHING;
	return { found, problem, stale: asked.key !== key };
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
