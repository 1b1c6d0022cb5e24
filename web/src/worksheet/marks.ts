// SPDX-License-Identifier: Apache-2.0
import { computed, effect, signal, untracked } from "@preact/signals";
import { ask } from "../api/client";
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

/** What is recorded is asked anew for its marks and gaps so often, in ms. */
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

/** The time of a mark with a little around it; one that lasts goes up to now. */
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
