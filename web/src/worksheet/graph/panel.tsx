// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { wordsOf } from "../../api/feed";
import type { Drawable } from "../../api/question";
import { TOP } from "../../api/stream-params";
import { cursor, edit, follows, type GraphSpec, whole } from "../../api/worksheet";
import { REST } from "../../canvas/hues";
import type { Numbered } from "../../canvas/lines";
import type { StackAnswer } from "../../generated/api";
import { Choice } from "../../lib/controls";
import { breakdownOf, brokenDown } from "../../lib/names";
import { momentWords, spanWords } from "../times";
import { colourOfName, colourOfNumber } from "./colours";
import { layerKeys, left, listedIn } from "./contents";
import { List } from "./list";
import { otherTime } from "./other-time";
import { Ranges } from "./ranges";
import { placeIn } from "./selected";
import { type Item, stateOf } from "./state";
import { useAsked, useRested } from "./use-answer";
import { percentileWords, rate } from "./values";

/** The left panel: what each value did, on average or in the selected second, the most first. */
export function Panel({ spec, answer }: { spec: GraphSpec; answer: Drawable | null }) {
	const state = stateOf(spec.id);
	const map = answer?.kind === "map";
	const field = map ? spec.by : answer?.kind === "stack" ? breakdownOf(spec.statistic) : "";
	const head = answer?.kind === "percentiles" ? "percentiles" : field;
	const second = spec.panel === "second" && cursor.value !== null;
	return (
		<aside class="graph-panel" aria-label={`Values of ${spec.statistic}`}>
			<div class="panel-head">
				{map && (
					<Choice
						label="by"
						name="by"
						title="What the values below are of (b)"
						values={["", ...state.fields.value]}
						value={spec.by}
						words={(each) => each || (answer.group?.y ?? "value")}
						onChange={(by) => edit(spec.id, { by, highlights: [] })}
					/>
				)}
				{!map && head && <strong>{head}</strong>}
				<button
					type="button"
					class="small panel-when"
					title="Averages of what is shown, or the selected second (v)"
					aria-pressed={second}
					onClick={() => edit(spec.id, { panel: spec.panel === "second" ? "average" : "second" })}
				>
					{second
						? momentWords(cursor.value?.from ?? 0, 1e9, whole.value.from).slice(-8)
						: map && !spec.by
							? "total"
							: answer?.kind === "percentiles"
								? "whole time"
								: "average"}
				</button>
			</div>
			{map && !spec.by && <Ranges spec={spec} second={second} />}
			{map && spec.by && <OfMap spec={spec} second={second} />}
			{answer && answer.kind !== "map" && <OfAnswer spec={spec} answer={answer} second={second} />}
		</aside>
	);
}

/** The values of a breakdown: they are in the answer, unless what is selected is not one column of it. */
function OfAnswer({ spec, answer, second }: { spec: GraphSpec; answer: Numbered; second: boolean }) {
	const at = second ? cursor.value : null;
	const place = at ? placeIn(answer, at) : "all";
	const apart = place === "other";
	const { recording, statistic, source } = useRested(() => wordsOf(spec), 150, [spec]);
	const span = { from: at?.from ?? null, to: at?.until ?? null };
	const drawn = answer.kind === "percentiles" ? "percentiles" : "";
	const words = apart && at ? { recording, statistic, source, ...span, interval: "whole", top: TOP, drawn } : null;
	const { found, stale, problem } = useAsked<Numbered>("query", words, 60);
	const one = apart && !stale ? found : null;
	const state = stateOf(spec.id);
	// what is painted has given the names their colours
	const painted = state.content.value;
	const named = answer.kind === "percentiles" ? "percentiles" : breakdownOf(answer.statistic);
	const items = useMemo(
		() => itemsOf(answer.statistic, answer, place, one, (key) => (key ? colourOfName(named, key) : colourOfNumber())),
		[answer, place, one, painted],
	);
	if (problem) return <p class="problem">{problem}</p>;
	const adds_up = answer.kind === "stack" && answer.adds_up;
	const other = place === "all" ? otherTime(spec, answer) : null;
	return (
		<>
			{other && (
				<p class="quiet notice" role="status">
					not of what is shown: of {spanWords(other, whole.value.from)}
				</p>
			)}
			<List spec={spec} items={items} sum={adds_up ? (value) => rate(value, answer.unit) : undefined} />
		</>
	);
}

/** What is listed of an answer at a place in it; `one`: the answer for what is selected alone, where that is not one column. */
export function itemsOf(
	statistic: string,
	answer: Numbered,
	place: ReturnType<typeof placeIn> | "all",
	one: Numbered | null,
	colour: (key: string) => string,
): Item[] {
	const shown = one ?? answer;
	const said = (value: number | null) => ({ value, words: valueWords(value, answer) });
	const number = (each: { mean: number | null; values: (number | null)[] }) => {
		if (one || place === "all") return said(each.mean);
		if (typeof place === "string") return { value: null, words: place === "outside" ? "not shown" : "…" };
		return said(each.values[place] ?? null);
	};
	if (shown.kind === "series") return [{ key: statistic, ...number(shown), colour: colour(""), single: false }];
	const known = new Set(answer.kind === "series" ? [] : answer.keys.map((each) => each.key));
	const named = (shown.keys as { key: string; mean: number | null; values: (number | null)[] }[]).map(
		(each): Item => ({
			key: each.key,
			...number(each),
			colour: known.has(each.key) ? colour(each.key) : "",
			single: true,
		}),
	);
	// of equal ones the higher percentile comes first
	if (shown.kind === "percentiles") return sorted(named.toReversed());
	const { others } = shown;
	const there = new Set(shown.keys.map((each) => each.key));
	for (const key of known) {
		if (there.has(key)) continue;
		const value = others || shown.covered_ns === 0 ? null : 0;
		const words = others ? "among the others" : rate(value, answer.unit);
		named.push({ key, words, value, colour: colour(key), single: true });
	}
	if (!others) return sorted(named);
	return [...sorted(named), { ...othersItem(shown, others.keys), ...(others.mean !== null && number(others)) }];
}

/** All that are not named: together where that says something, on average where they are shares. */
function othersItem({ adds_up, others }: StackAnswer, keys: number): Item {
	const averaged = !adds_up && keys > 1 && others?.mean !== null;
	const words = adds_up ? "nothing recorded" : "overlap: no sum";
	return { key: `${keys} others${averaged ? " on average" : ""}`, words, value: null, colour: REST, single: false };
}

/** A value of an answer in words. */
function valueWords(value: number | null, answer: Numbered): string {
	if (answer.kind !== "percentiles") return rate(value, answer.unit);
	return value === null ? "no I/O" : percentileWords(value, answer);
}

/** The values of a field other than that of the map, requested for everything shown or for the selected second. */
function OfMap({ spec, second }: { spec: GraphSpec; second: boolean }) {
	const base = useRested(() => wordsOf(spec), 150, [spec]);
	const at = second ? cursor.value : null;
	const { recording, source, from, to } = base;
	const span = at ? { from: at.from, to: at.until } : { from: from ?? null, to: to ?? null };
	const statistic = brokenDown(spec.statistic, spec.by);
	const words = { recording: recording ?? "", statistic, source: source ?? "", ...span, interval: "whole", top: TOP };
	const { found, problem } = useAsked<StackAnswer>("query", words, follows.value ? 1000 : 60);
	const state = stateOf(spec.id);
	const items = useMemo(() => {
		const suits = found && breakdownOf(found.statistic) === spec.by ? found : null;
		if (!suits) return [];
		const named: Item[] = suits.keys.map((each) => ({
			key: each.key,
			words: rate(each.mean, suits.unit),
			value: each.mean,
			colour: "",
			single: true,
		}));
		// those of the list, as the painter takes them: equal values have one order
		const ordered = sorted(named);
		const coloured = new Set(layerKeys(spec, ordered));
		const wished = (key: string) => spec.mode === "rainbow" || spec.highlights.includes(key);
		const list = ordered.map((item) => {
			if (coloured.has(item.key)) return { ...item, colour: colourOfName(spec.by, item.key) };
			// there are not enough colours to distinguish it: it is grey
			return coloured.size > 0 && wished(item.key) ? { ...item, colour: REST } : item;
		});
		const { others } = suits;
		if (!others) return list;
		const number = others.mean !== null && { words: rate(others.mean, suits.unit), value: others.mean };
		return [...list, { ...othersItem(suits, others.keys), ...number, colour: "" }];
	}, [found, spec, state.content.value]);
	if (problem) return <p class="problem">{problem}</p>;
	const uncoloured = left(spec, listedIn(items));
	return (
		<>
			{uncoloured && (
				<p class="quiet notice" role="status" title={uncoloured}>
					{uncoloured}
				</p>
			)}
			<List spec={spec} items={items} sum={found?.adds_up ? (value) => rate(value, found.unit) : undefined} />
		</>
	);
}

const byName = new Intl.Collator("en", { numeric: true });
const sorted = (items: readonly Item[]): Item[] =>
	// of equal values sda2 comes before sda10
	items.toSorted((one, other) => (other.value ?? -1) - (one.value ?? -1) || byName.compare(one.key, other.key));
