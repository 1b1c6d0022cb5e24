// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import type { Problem, Tick } from "../generated/api";
import { messageOf, UNREACHED } from "../lib/errors";
import { unreachable } from "./answer-cache";
import { decodeHeat, MEDIA_TYPE } from "./binary";
import { answerHeld, inlined } from "./offline";
import { type Drawable, question, Refusal, type Words } from "./question";

/** A request that did not reach the service, or for which it had no time, is repeated after this time in ms. */
export const AGAIN = 2000;

/** How often a served recording could not be read: it may be damaged or deleted. */
export const unread = signal(0);
const UNREAD = 409;

/** An address of the service. */
export const address = (path: string, words: Words): string => `/api/v1/${question(path, words)}`;

/** Questions that were put and not refused, the latest last: what a file that is shared has to hold. */
const known = new Set<string>();
const REMEMBERED = 500;
/** Those of them that have no answer yet, with how often they were put. */
const underWay = new Map<string, number>();

export const asked = (): string[] => [...known];
export const waiting = (): string[] => [...underWay.keys()];

/** Ask once; a refusal becomes an error with the service's own words. */
export async function ask<T>(path: string, words: Words = {}, signal?: AbortSignal): Promise<T> {
	if (inlined()) return answerHeld<T>(path, words);
	const name = question(path, words);
	remember(name);
	underWay.set(name, (underWay.get(name) ?? 0) + 1);
	try {
		const response = await reach(address(path, words), {
			headers: { accept: `${MEDIA_TYPE}, application/json` },
			signal: signal ?? null,
		});
		const mapped = response.headers.get("content-type") === MEDIA_TYPE;
		return decoded<T>(await response.arrayBuffer(), mapped, response.status);
	} catch (error) {
		known.delete(name);
		if (!(error instanceof Refusal) || error.status !== UNREAD) throw error;
		unread.value++;
		throw new Refusal(UNREAD, unreadWords(words.recording, error.message));
	} finally {
		const left = (underWay.get(name) ?? 1) - 1;
		if (left > 0) underWay.set(name, left);
		else underWay.delete(name);
	}
}

/** Why a recording can't be read, with its name. */
export const unreadWords = (name: Words[string], words: string): string => (name ? `${name}: ${words}` : words);

/** The parsed body. An unreadable one is refused: a repeated request would return the same. */
function decoded<T>(body: ArrayBuffer, mapped: boolean, status: number): T {
	try {
		return (mapped ? decodeHeat(body) : JSON.parse(new TextDecoder().decode(body))) as T;
	} catch (error) {
		throw new Refusal(status, mapped ? messageOf(error) : inWords(null));
	}
}

function remember(name: string): void {
	known.delete(name);
	known.add(name);
	for (const first of known) if (known.size > REMEMBERED) known.delete(first);
}

/** Ask for what is kept as a file. */
export async function file(path: string, words: Words): Promise<Blob> {
	return (await reach(address(path, words), {})).blob();
}

/** Change something. Returns the answer of the service; null if it is empty. */
export async function tell<T>(method: "PUT" | "POST" | "DELETE", path: string, body?: unknown): Promise<T> {
	const response = await reach(`/api/v1/${path}`, {
		method,
		headers: { accept: "application/json", "content-type": "application/json" },
		body: body === undefined ? null : JSON.stringify(body),
	});
	const text = await response.text();
	return (response.headers.get("content-type")?.includes("json") && text ? JSON.parse(text) : text || null) as T;
}

const TOKEN =
	"The service has another token than this page: open the address that iolab printed. With --token-file it keeps one.";

async function reach(url: string, options: RequestInit): Promise<Response> {
	const response = await fetch(url, options).catch((error: unknown) => {
		if (options.signal?.aborted) throw error;
		unreachable.value = true;
		throw new Error(UNREACHED);
	});
	if (response.ok) return response;
	if (response.status === 401) throw new Refusal(401, TOKEN);
	throw new Refusal(response.status, inWords((await response.json().catch(() => null)) as Problem | null));
}

/** What is heard of a recording that is followed. */
export interface Heard {
	tick: (tick: Tick) => void;
	answer: (answer: Drawable) => void;
	problem: (words: string) => void;
	lost: (ended: boolean) => void;
	/** The service is there, and takes no stream: why, in its words. */
	refused: (words: string) => void;
}

const CLOSED = 2;

/** Follow a recording until what is returned is called. A stream that was refused, as by a service that restarts, is opened again. */
export function follow(words: Words, heard: Heard): () => void {
	let source: EventSource;
	let probe = new AbortController();
	let timer: ReturnType<typeof setTimeout> | undefined;
	const open = () => {
		const url = address("stream", words);
		source = new EventSource(url);
		const on = <T>(name: string, take: (data: T) => void) =>
			source.addEventListener(name, (event) => take(JSON.parse((event as MessageEvent<string>).data) as T));
		on<Tick>("tick", heard.tick);
		on<Drawable>("answer", heard.answer);
		on<Problem>("problem", (problem) => heard.problem(inWords(problem)));
		source.onopen = () => heard.lost(false);
		source.onerror = () => {
			if (source.readyState !== CLOSED) return heard.lost(true);
			probe = new AbortController();
			void whyNot(url, probe, heard);
			timer = setTimeout(open, AGAIN);
		};
	};
	open();
	return () => {
		clearTimeout(timer);
		probe.abort();
		source.close();
	};
}

/** A refused stream has no reason: the same question as a plain request has one. */
async function whyNot(url: string, probe: AbortController, heard: Heard): Promise<void> {
	try {
		await reach(url, { signal: probe.signal });
		// it is taken by now: the stream is opened again, this one is not needed
		probe.abort();
	} catch (error) {
		if (probe.signal.aborted) return;
		if (error instanceof Refusal) heard.refused(error.message);
		else heard.lost(true);
	}
}

function inWords(problem: Problem | null): string {
	if (!problem) return "The service answered with something that is no answer.";
	return problem.hint ? `${problem.error}; ${problem.hint}` : problem.error;
}
