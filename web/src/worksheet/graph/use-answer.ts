// SPDX-License-Identifier: Apache-2.0
import { effect, untracked } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { forgotten } from "../../api/answer-cache";
import { AGAIN, ask } from "../../api/client";
import { question, Refusal, type Words } from "../../api/question";

/** What is known of a question. The last answer stays until the next is there, so that nothing jumps. */
export interface Asked<T> {
	found: T | null;
	/** Whether `found` answers another question than the current one. */
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

/** What is known after an error: after a passing error the last answer remains. */
export function failed<T>(before: Known<T>, error: unknown, key: string, about: string): Known<T> {
	if (passes(error)) return { ...before, problem: "" };
	return { found: null, key, about, problem: (error as Error).message };
}

/** The state of the current question; empty if the answer is about another one. */
export function foundOf<T>(known: Known<T>, words: Words | null): Pick<Asked<T>, "found" | "problem"> {
	if (!words || known.about !== aboutOf(words)) return { found: null, problem: "" };
	return { found: known.found, problem: known.problem };
}

/**
 * Ask, and ask again when the question changes, one at a time and so many ms apart at least; null asks nothing, and gives up what is under
 * way. `hasty`: gives it up as well when the question changes, for questions asked at rest only.
 */
export function useAsked<T>(path: string, words: Words | null, pace: number, hasty = false): Asked<T> {
	const [asked, setAsked] = useState<Known<T>>(NOTHING);
	const state = useRef({
		key: "",
		stop: null as AbortController | null,
		at: 0,
		alive: true,
		timer: 0 as unknown as ReturnType<typeof setTimeout>,
	});
	const key = words ? `${question(path, words)} ${forgotten.value}` : "";
	const about = words ? aboutOf(words) : "";
	useEffect(() => {
		const { current } = state;
		current.alive = true;
		return () => {
			current.alive = false;
			current.stop?.abort();
			clearTimeout(current.timer);
		};
	}, []);
	useEffect(() => {
		const { current } = state;
		const giveUp = () => {
			current.stop?.abort();
			current.stop = null;
		};
		const again = () => {
			clearTimeout(current.timer);
			if (!words || current.key === key || !current.alive) return;
			if (hasty) giveUp();
			if (!current.stop) current.timer = setTimeout(put, Math.max(0, current.at + pace - Date.now()));
		};
		const put = async () => {
			const stop = new AbortController();
			Object.assign(current, { stop, key, at: Date.now() });
			const next = await ask<T>(path, words ?? {}, stop.signal).then(
				(found) => () => ({ found, key, about, problem: "" }),
				(error: unknown) => {
					if (passes(error) && !stop.signal.aborted) {
						current.key = "";
						current.at = Date.now() + AGAIN - pace;
					}
					return (before: Known<T>) => failed(before, error, key, about);
				},
			);
			if (stop.signal.aborted) return;
			current.stop = null;
			if (current.alive) setAsked(next);
		};
		if (!words) {
			giveUp();
			current.key = "";
			setAsked((before) => (before === NOTHING ? before : NOTHING));
		}
		again();
		// once an answer is there the question may be another one by then
	}, [key, path, asked]);
	return { ...foundOf(asked, words), stale: asked.key !== key };
}

/** What a value that is rested is about: words of another recording or statistic are not waited for. */
const subjectOf = (value: unknown): string =>
	typeof value === "object" && value !== null && "recording" in value ? aboutOf(value as Words) : "";

/** Shows one of many values that come on and on. */
export interface Resting<T> {
	take: (made: T) => void;
	end: () => void;
}

/**
 * Show the last value when so many ms have passed since it came, and `most` since the first that was not shown. Nothing, and what is about
 * something else than the value before, is shown at once. `first`: what is shown already.
 */
export function resting<T>(show: (made: T) => void, wait: number, most: number, first: T): Resting<T> {
	let [subject, since] = [subjectOf(first), 0];
	let timer: ReturnType<typeof setTimeout> | undefined;
	const end = () => clearTimeout(timer);
	const take = (made: T) => {
		end();
		const before = subject;
		subject = subjectOf(made);
		const tell = () => {
			since = 0;
			show(made);
		};
		if (made === null || (before && subject && before !== subject)) return tell();
		since ||= Date.now();
		timer = setTimeout(tell, Math.max(0, Math.min(wait, since + most - Date.now())));
	};
	return { take, end };
}

/** A value made from signals and dependencies that follows them at rest, as `resting` says. */
export function useRested<T>(
	make: () => T,
	wait: number,
	dependencies: readonly unknown[],
	most: number = 4 * wait,
): T {
	const [value, setValue] = useState(() => untracked(make));
	const rest = useRef<Resting<T> | null>(null);
	rest.current ??= resting((made) => setValue(() => made), wait, most, value);
	useEffect(() => rest.current?.end, []);
	useEffect(() => effect(() => rest.current?.take(make())), dependencies);
	return value;
}
