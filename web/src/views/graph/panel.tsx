import { useMemo } from "preact/hooks";
import { hueOf, REST } from "../../canvas/hues";
import type { StackAnswer } from "../../generated/api";
import type { Drawable } from "../../model/ask";
import { wordsOf } from "../../model/feed";
import { TOP } from "../../model/following";
import { breakdownOf, brokenDown } from "../../model/names";
import { momentWords } from "../../model/times";
import { cursor, edit, follows, type GraphSpec, whole } from "../../model/worksheet";
import { Choice } from "../controls";
import { useAsked, useRested } from "./asked";
import { layerKeys } from "./contents";
import { List } from "./list";
import { Ranges } from "./ranges";
import { type Item, stateOf } from "./state";
import { rate } from "./values";

/** The left panel: what each value did, on average or in the selected second, the most first. */
export function Panel({ spec, answer }: { spec: GraphSpec; answer: Drawable | null }) {
	const state = stateOf(spec.id);
	const map = answer?.kind === "map";
	const field = map ? spec.by : answer?.kind === "stack" ? breakdownOf(spec.statistic) : "";
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
				{!map && field && <strong>{field}</strong>}
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
							? "all"
							: "average"}
				</button>
			</div>
			{map && !spec.by && <Ranges spec={spec} second={second} />}
			{map && spec.by && <OfMap spec={spec} second={second} />}
			{answer && answer.kind !== "map" && <OfAnswer spec={spec} answer={answer} second={second} />}
		</aside>
	);
}

/** The values of a breakdown: they are in the answer. */
function OfAnswer({
	spec,
	answer,
	second,
}: {
	spec: GraphSpec;
	answer: Drawable & { kind: "series" | "stack" };
	second: boolean;
}) {
	const at = second ? cursor.value : null;
	const column = at ? Math.floor((at.from - answer.t0_ns) / answer.interval_ns) : -1;
	const state = stateOf(spec.id);
	const items = useMemo(() => {
		const words = (value: number | null) => rate(value, answer.unit);
		const value = (each: { mean: number | null; values: (number | null)[] }) =>
			at ? (each.values[column] ?? null) : each.mean;
		if (answer.kind === "series") {
			return [
				{ key: spec.statistic, words: words(value(answer)), value: value(answer), colour: hueOf(0), single: false },
			];
		}
		const colour = (key: string) => hueOf(state.places.get(key) ?? 0);
		const found: Item[] = answer.keys.map((each) => ({
			key: each.key,
			words: words(value(each)),
			value: value(each),
			colour: colour(each.key),
			single: true,
		}));
		const { others } = answer;
		const rest = others && {
			key: `${others.keys} others`,
			words: words(value(others)),
			value: value(others),
			colour: REST,
			single: false,
		};
		return rest ? [...sorted(found), rest] : sorted(found);
	}, [answer, column, at === null]);
	return <List spec={spec} items={items} />;
}

/** The values of another field than the map's: they are asked for, of all that is shown or of the selected second. */
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
		const coloured = new Set(layerKeys(spec, named));
		const list = sorted(named).map((item) =>
			coloured.has(item.key) ? { ...item, colour: hueOf(state.places.get(item.key) ?? -1) } : item,
		);
		const { others } = suits;
		if (!others) return list;
		const rest = {
			key: `${others.keys} others`,
			words: rate(others.mean, suits.unit),
			value: others.mean,
			colour: "",
			single: false,
		};
		return [...list, rest];
	}, [found, spec, state.content.value]);
	if (problem) return <p class="problem">{problem}</p>;
	return <List spec={spec} items={items} />;
}

const sorted = (items: readonly Item[]): Item[] =>
	items.toSorted((one, other) => (other.value ?? -1) - (one.value ?? -1));
