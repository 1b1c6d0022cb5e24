// SPDX-License-Identifier: Apache-2.0
import { computed, signal } from "@preact/signals";
import { ahead, facts, SECOND, type Span, sheet, time, whole } from "../api/worksheet";
import { toNow } from "./time-navigation";
import { lengthOf } from "./times";

export const SPEEDS = [1, 2, 5, 10, 20, 50, 100] as const;
export type Speed = (typeof SPEEDS)[number];

/** Data of this many real seconds after the window is requested during a replay. */
const AHEAD_S = 2;
/** Longer pauses between two frames, as of a page that was not seen, are not caught up, in ms. */
const LONGEST_MS = 250;

/** How the recording is replayed; null while it is not. */
export const replay = signal<{ speed: Speed; playing: boolean } | null>(null);

/** Where the window ends, as a share of the recording. */
export const position = computed(() => {
	const { from, until } = bounds();
	return until > from ? Math.min(1, Math.max(0, (time.value.until - from) / (until - from))) : 1;
});

/** The earliest and the latest end of the window. */
function bounds(): Span {
	const { from, until } = whole.value;
	return { from: Math.min(until, from + lengthOf(time.value)), until };
}

/** The window after some real time: moved by that times the speed, not beyond the end. */
export function played(window: Span, ms: number, speed: number, end: number): Span {
	const by = Math.min(Math.min(ms, LONGEST_MS) * 1e6 * speed, Math.max(0, end - window.until));
	return { from: Math.round(window.from + by), until: Math.round(window.until + by) };
}

let frame = 0;
let before = 0;

/** Open the replay, at rest, or close it. */
export function toggleReplay(): void {
	if (replay.peek()) {
		closeReplay();
		return;
	}
	replay.value = { speed: 1, playing: false };
	// the control that follows the recording is first
	if ("live" in sheet.peek().time) sheet.value = { ...sheet.peek(), time: time.peek() };
}

/** Close the replay; what is shown stays. */
export function closeReplay(): void {
	stop();
	replay.value = null;
}

/** Play, or pause. At the end it starts again. */
export function playOrPause(): void {
	const now = replay.peek();
	if (!now) return;
	if (now.playing) {
		stop();
		return;
	}
	if (time.peek().until >= whole.peek().until - 1e6) seek(0);
	replay.value = { ...now, playing: true };
	ahead.value = AHEAD_S * now.speed * SECOND;
	before = performance.now();
	frame = requestAnimationFrame(step);
}

/** Pause. */
export function stop(): void {
	cancelAnimationFrame(frame);
	ahead.value = 0;
	const now = replay.peek();
	if (now?.playing) replay.value = { ...now, playing: false };
}

function step(at: number): void {
	const now = replay.peek();
	if (!now?.playing) return;
	const window = time.peek();
	// the user went back to following
	if ("live" in sheet.peek().time) {
		stop();
		return;
	}
	const end = whole.peek().until;
	const next = played(window, at - before, now.speed, end);
	before = at;
	sheet.value = { ...sheet.peek(), time: next };
	if (next.until >= end - 1) {
		stop();
		// a replay at the end of the data continues with what is recorded
		if (facts.peek()?.live) toNow();
		return;
	}
	frame = requestAnimationFrame(step);
}

/** Play at another speed. */
export function setSpeed(speed: Speed): void {
	const now = replay.peek();
	if (!now) return;
	replay.value = { ...now, speed };
	if (now.playing) ahead.value = AHEAD_S * speed * SECOND;
}

/** The next speed, faster (1) or slower (-1). */
export function changeSpeed(by: 1 | -1): void {
	const now = replay.peek();
	const speed = now && SPEEDS[SPEEDS.indexOf(now.speed) + by];
	if (speed) setSpeed(speed);
}

/** Move the window so that it ends at a share of the recording. */
export function seek(share: number): void {
	const { from, until } = bounds();
	const end = Math.round(from + share * (until - from));
	sheet.value = { ...sheet.peek(), time: { from: end - Math.round(lengthOf(time.peek())), until: end } };
}
