// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ask } from "../../api/client";
import { add, edit, focus, recording, type Span, sheet, spanOf, whole } from "../../api/worksheet";
import type { Odd, OddChange, Oddity } from "../../generated/api";
import { messageOf } from "../../lib/errors";
import { breakdownOf, visible } from "../../lib/names";
import { place } from "../arrangement";
import { stateOf } from "../graph/state";
import { focused, shown } from "../time-navigation";
import { spanWords } from "../times";
import "./odd.css";

/** Findings that are listed at first, so that the graph of the first one is visible below them. */
const SHOWN = 3;

/** The search for oddities: none, under way, answered or refused. */
interface Search {
	recording: string;
	/** The page started the search: findings are listed, and none is shown in a graph. */
	isOffered: boolean;
	isClosed: boolean;
	answer: Odd | null;
	problem: string;
}

const search = signal<Search | null>(null);
let stop: AbortController | null = null;

/** The page searches recordings of at most so many I/Os without a click: that takes a few seconds. */
export const SEARCHED = 5_000_000;

/** Ask what is odd in the marked time of the focused graph, or in the time shown; the strongest finding is shown. */
export const searchOddities = (): Promise<void> => searchIn(markedSpan() ?? shown(), false);

/** Ask what is odd in all of the recording, once; findings are listed, and none is shown in a graph. */
export function offerOddities(): void {
	if (search.peek()?.recording !== sheet.peek().recording) void searchIn(whole.peek(), true);
}

async function searchIn({ from, until }: Span, isOffered: boolean): Promise<void> {
	stop?.abort();
	stop = new AbortController();
	const { signal: given } = stop;
	const { recording } = sheet.peek();
	search.value = { recording, isOffered, isClosed: false, answer: null, problem: "" };
	const words = { recording, from: Math.max(0, Math.round(from)), to: Math.round(until) };
	try {
		const answer = await ask<Odd>("odd", words, given);
		if (given.aborted) return;
		search.value = { recording, isOffered, isClosed: false, answer, problem: "" };
		const first = answer.oddities[0];
		if (first && !isOffered) showOddity(first);
	} catch (error) {
		if (!given.aborted)
			search.value = { recording, isOffered, isClosed: false, answer: null, problem: messageOf(error) };
	}
}

function closeSearch(): void {
	stop?.abort();
	// the same is not offered twice
	if (search.value) search.value = { ...search.value, isClosed: true };
}

function markedSpan(): Span | null {
	const spec = focused();
	return (spec && stateOf(spec.id).mark.peek()) ?? null;
}

/** The time in which an oddity is seen with some of the quiet time before it. */
export function spanAround({ from_ns, until_ns }: Oddity, all: Span): Span {
	const length = until_ns - from_ns;
	return { from: Math.max(all.from, from_ns - length), until: Math.min(all.until, until_ns + length / 10) };
}

/** Show a change of an oddity on a graph of its statistic, marked. */
export function showOddity(oddity: Oddity, change: OddChange | undefined = oddity.changes[0]): void {
	if (!change) return;
	const known = sheet.peek().graphs.find((each) => each.statistic === change.statistic);
	const id = known?.id ?? add(change.statistic);
	if (!id) return;
	// next to the sentence that it shows
	if (!known) place(id, 0);
	focus.value = id;
	const spec = sheet.peek().graphs.find((each) => each.id === id);
	if (!spec) return;
	const seen = spanOf(spec);
	if (oddity.from_ns < seen.from || oddity.until_ns > seen.until || "live" in sheet.peek().time) {
		const span = spanAround(oddity, whole.peek());
		if (spec.synced) sheet.value = { ...sheet.peek(), time: span };
		else edit(id, { span });
	}
	if (oddity.field && breakdownOf(change.statistic) === oddity.field) edit(id, { highlights: oddity.values });
	const mapped = change.low !== null && change.high !== null;
	stateOf(id).mark.value = {
		from: oddity.from_ns,
		until: oddity.until_ns,
		low: change.low ?? 0,
		high: change.high ?? Number.MAX_SAFE_INTEGER,
		...(mapped && { mapped }),
	};
}

/** Oddities, the strongest first; nothing before the first request. */
export function OdditiesPanel() {
	const found = search.value;
	const home = useRef<HTMLElement>(null);
	useEffect(() => {
		if (found && !found.isOffered) home.current?.scrollIntoView?.({ block: "nearest" });
	}, [found]);
	if (!found || found.isClosed || found.recording !== recording.value) return null;
	return (
		<section
			ref={home}
			class={found.isOffered ? "odd offered" : "odd"}
			aria-label="What is odd"
			aria-busy={!found.answer && !found.problem}
		>
			<div class="odd-head">
				<h2>What is odd here?</h2>
				<button type="button" class="small" aria-label="Close what is odd" onClick={closeSearch}>
					×
				</button>
			</div>
			<div role="status">
				{found.problem && <p class="problem">{found.problem}</p>}
				{!found.answer && !found.problem && <p class="quiet waiting">All statistics are compared…</p>}
				{found.answer && <Answer answer={found.answer} />}
			</div>
		</section>
	);
}

function Answer({ answer }: { answer: Odd }) {
	const quiet = spanWords({ from: answer.quiet_from_ns, until: answer.quiet_until_ns }, whole.value.from);
	const compared = `${answer.compared} series compared with ${quiet}`;
	if (answer.oddities.length === 0)
		return <p>Nothing is odd: no change exceeds the variation of the time before it ({compared}).</p>;
	return (
		<>
			<Findings oddities={answer.oddities.slice(0, SHOWN)} first={1} />
			{answer.oddities.length > SHOWN && (
				<details>
					<summary>{answer.oddities.length - SHOWN} more</summary>
					<Findings oddities={answer.oddities.slice(SHOWN)} first={SHOWN + 1} />
				</details>
			)}
			<p class="quiet">
				{compared}
				{answer.notes.map((note) => `; ${note}`)}
			</p>
		</>
	);
}

function Findings({ oddities, first }: { oddities: readonly Oddity[]; first: number }) {
	return (
		<ol start={first}>
			{oddities.map((oddity) => (
				<li key={oddity.sentence}>
					<button type="button" class="link" title="Show and mark it" onClick={() => showOddity(oddity)}>
						{visible(oddity.sentence)}
					</button>
					<Changes oddity={oddity} />
				</li>
			))}
		</ol>
	);
}

/** The statistics of an oddity, and other names of the same I/Os. */
function Changes({ oddity }: { oddity: Oddity }) {
	const statistics = oddity.changes.filter(
		({ statistic }, number) => oddity.changes.findIndex((other) => other.statistic === statistic) === number,
	);
	return (
		<span class="quiet odd-more">
			{statistics.map((each) => (
				<button key={each.statistic} type="button" class="small" onClick={() => showOddity(oddity, each)}>
					{visible(each.statistic)}
				</button>
			))}
			{oddity.aliases.length > 0 &&
				` the same I/Os: ${visible(oddity.aliases.map(({ field, value }) => `${field} ${value}`).join(", "))}`}
		</span>
	);
}
