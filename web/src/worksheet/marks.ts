// SPDX-License-Identifier: Apache-2.0
import { computed, effect, signal, untracked } from "@preact/signals";
import { ask, tell } from "../api/client";
import { facts, type Span, sheet } from "../api/worksheet";
import type { Losses, Mark, Marks } from "../generated/api";

/** The marks of the recording that is shown, the times in which nothing was recorded, those in which it was, where that is known, and losses by kind. */
const NOTHING = {
	found: [] as Mark[],
	left: 0,
	gaps: [] as Span[],
	recorded: [] as Span[],
	lost: {} as Record<string, number>,
};
const found = signal(NOTHING);

export const marks = {
	get value() {
		return found.value;
	},
	refresh(): void {
		void load(untracked(() => sheet.value.recording));
	},
};

/** Interval of requests for marks and gaps of a growing recording, in ms. */
const EVERY = 30_000;

/** Keep them those of the recording that is shown, and while that grows, of what it holds by now. */
export function followMarks(): () => void {
	const recording = computed(() => sheet.value.recording);
	const grows = computed(() => facts.value?.live ?? false);
	const ends = [
		effect(() => {
			if (!recording.value) return;
			found.value = NOTHING;
			void load(recording.value);
		}),
		effect(() => {
			if (!recording.value || !grows.value) return undefined;
			const asking = setInterval(marks.refresh, EVERY);
			return () => clearInterval(asking);
		}),
	];
	return () => {
		for (const end of ends) end();
	};
}

async function load(recording: string): Promise<void> {
	try {
		const [named, lost] = await Promise.all([ask<Marks>("marks", { recording }), ask<Losses>("losses", { recording })]);
		if (recording !== sheet.peek().recording) return;
		const spans = (list: [number, number][]) => list.map(([from, until]) => ({ from, until }));
		found.value = {
			found: named.marks,
			left: named.left,
			gaps: spans(lost.gaps),
			recorded: spans(lost.recorded),
			lost: lost.totals,
		};
	} catch {
		// a page without marks is still a page; what is wrong with the recording is said elsewhere
	}
}

/** The time of a mark with a little around it; without an end it reaches to now. */
export function markSpan(mark: Mark, now: number): Span {
	const until = Math.max(mark.until_ns ?? now, mark.from_ns + 1e6);
	const margin = 0.02 * (until - mark.from_ns);
	return { from: mark.from_ns - margin, until: until + margin };
}

/** Where a run's report is, null where the mark is of no run that is served. */
export function markLink(mark: Mark): string | null {
	const { report, run } = mark.facts as { report?: unknown; run?: unknown };
	return typeof report === "string" && typeof run === "string"
		? `/report/${encodeURIComponent(report)}#run=${encodeURIComponent(run)}`
		: null;
}

/** What is known of a mark: of a run its variant, cell and verdict, of a user's mark its note. */
export interface MarkWords {
	label: string;
	/** Variant and cell of a run. */
	what: string;
	/** OK, SUSPECT, INVALID or UNJUDGED; "" where that is not known. */
	verdict: string;
	/** The reasons of a verdict, or a user's note. */
	note: string;
}

/** A mark in words. */
export function wordsOf({ label, facts }: Mark): MarkWords {
	const text = (value: unknown) => (typeof value === "string" ? value : "");
	const { variant, cell, factors, verdict, reasons, note } = facts as Record<string, unknown>;
	const levels = Object.entries((cell ?? factors ?? {}) as Record<string, unknown>);
	const what = [text(variant), ...levels.map(([name, level]) => `${name}=${String(level)}`)];
	return {
		label,
		what: what.filter(Boolean).join(" "),
		verdict: text(verdict),
		note: text(note) || (Array.isArray(reasons) ? reasons.map(String).join("; ") : ""),
	};
}

/** A mark as one line. */
export function lineOf(mark: Mark): string {
	const { label, what, verdict, note } = wordsOf(mark);
	return [label, what, verdict, note].filter(Boolean).join(" · ");
}

/**
 * Times of runs, in order, where a recording has marks of runs: I/O is expected in these alone. Null where it is expected at any time. `left`:
 * how many earlier marks are not listed.
 */
export function runTimes(list: readonly Mark[], left: number): Span[] | null {
	const runs = list.filter((mark) => mark.kind === "run");
	if (runs.length === 0) return null;
	const first = Math.min(...runs.map((run) => run.from_ns));
	// of the time of marks that are not listed nothing is known
	const before = left > 0 ? [{ from: Number.NEGATIVE_INFINITY, until: first }] : [];
	const spans = runs.map((run) => ({ from: run.from_ns, until: run.until_ns ?? Number.POSITIVE_INFINITY }));
	return [...before, ...spans].sort((one, other) => one.from - other.from);
}

export const busyTimes = computed(() => runTimes(found.value.found, found.value.left));

/** Marks in a span of time that cover a moment, or lie within `reach` ns of it. */
export const marksAt = (moment: number, reach: number): Mark[] =>
	found
		.peek()
		.found.filter(
			(mark) => moment >= mark.from_ns - reach && moment <= (mark.until_ns ?? Number.POSITIVE_INFINITY) + reach,
		);

/** Set a mark, which all viewers of the recording see. */
export async function addMark(span: Span, label: string, note: string): Promise<void> {
	const { recording } = sheet.peek();
	const [from_ns, until_ns] = [Math.round(span.from), Math.round(span.until)];
	await tell<Marks>("POST", "marks/add", { recording, label, from_ns, until_ns, note });
	await load(recording);
}

/** Remove a mark that a user set. */
export async function removeMark({ label, from_ns }: Mark): Promise<void> {
	const { recording } = sheet.peek();
	await tell<Marks>("POST", "marks/remove", { recording, label, from_ns });
	await load(recording);
}
