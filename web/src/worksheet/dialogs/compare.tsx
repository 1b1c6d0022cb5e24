// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { snapped } from "../../api/columns";
import { answerOf, wordsOf } from "../../api/feed";
import type { Words } from "../../api/question";
import { TOP } from "../../api/stream-params";
import { follows, type GraphSpec, sheet, spanOf, whole } from "../../api/worksheet";
import { steps } from "../../canvas/bitmap";
import { wholeAxis } from "../../canvas/cells";
import { Changes } from "../../canvas/changes";
import { numberTicks } from "../../canvas/numbers";
import { PairedSeries } from "../../canvas/paired-series";
import { percent, quantity, UNITS } from "../../canvas/ticks";
import type { Change, Changes as ChangesAnswer, Difference } from "../../generated/api";
import { breakdownOf, visible } from "../../lib/names";
import { colours } from "../../lib/theme";
import { colourOfName, colourOfNumber } from "../graph/colours";
import { choose, Swatch, walk } from "../graph/list";
import { differenceOf, stateOf } from "../graph/state";
import { TimeGraph } from "../graph/time-graph";
import { useAsked, useRested } from "../graph/use-answer";
import { counted, rate, rowWords } from "../graph/values";
import { WhoIsThis } from "../graph/who";
import { lengthOf, spanWords } from "../times";

/** Minimum interval of requests while it follows, in ms. */
const FOLLOWING = 2000;

/** A graph compared with another time: of a heat map the differences, of numbers both times in one plot. */
export function DifferenceView({ spec }: { spec: GraphSpec }) {
	const words = useRested(() => compared(spec), 120, [spec]);
	const { found, problem } = useAsked<Difference | ChangesAnswer>("difference", words, follows.value ? FOLLOWING : 60);
	const answer = answerOf(spec).value;
	// its colours are those of the graph, which may be painted later
	const painted = found?.kind === "changes" ? stateOf(spec.id).content.value : null;
	const content = useMemo(() => found && contentOf(spec, found), [spec, found, painted]);
	const other = sheet.value.compare;
	if (!other || !answer) return null;
	if (!compared(spec)) return <p class="quiet">Nothing to compare with: the recording's clock begins later.</p>;
	if (!words) return null;
	const times = [
		spanWords(spanOf(spec), whole.value.from),
		spanWords({ from: other.from, until: other.from + lengthOf(spanOf(spec)) }, whole.value.from),
	] as const;
	const map = found?.kind === "difference" ? found.group : null;
	// before it is answered it is known already what it will be
	const mapped = found ? found.kind === "difference" : answer.kind === "map";
	return (
		<div class="graph difference">
			<Heading times={times} mapped={mapped} bytes={map?.weight === "bytes"} />
			{problem && <p class="problem">{problem}</p>}
			{found && !content && <p class="quiet">Neither time holds anything to compare.</p>}
			<div class="graph-body">
				<aside class="graph-panel" aria-label={`Changes of ${spec.statistic}`}>
					{found?.kind === "changes" && <ChangeList spec={spec} found={found} />}
				</aside>
				<TimeGraph
					spec={spec}
					content={content}
					label={`${spec.statistic}: ${times.join(mapped ? " less " : " and ")}`}
					marks={differenceOf(spec.id)}
				/>
			</div>
			<p class="quiet">{found?.notes.join(" · ") || "\u00a0"}</p>
			{found && (
				<WhoIsThis spec={spec} marks={differenceOf(spec.id)} map={map} shift={found.other_from_ns - found.from_ns} />
			)}
		</div>
	);
}

/** The distance of its step from either end of the palette of differences. */
const FAR = 40;

function Heading({
	times: [now, then],
	mapped,
	bytes,
}: {
	times: readonly [string, string];
	mapped: boolean;
	bytes: boolean;
}) {
	return (
		<h3>
			{mapped ? "Difference" : "Both times"}: <span class="then">{now}</span> {mapped ? "minus" : "and"}{" "}
			<span class="then">{then}</span>{" "}
			{mapped && (
				<span class="quiet">
					<Swatch colour={steps(colours.value.signed)[FAR] ?? ""} /> fewer,{" "}
					<Swatch colour={steps(colours.value.signed).at(-1 - FAR) ?? ""} /> more {bytes ? "bytes" : "I/Os"} per second
				</span>
			)}
		</h3>
	);
}

/** The request; null if there is nothing to compare. Both times begin with a whole column. */
function compared(spec: GraphSpec): Words | null {
	const other = sheet.value.compare;
	if (!other || !answerOf(spec).value) return null;
	const { recording, statistic, source, from: begin, to: end, interval: length } = wordsOf(spec);
	const interval = Number.parseInt(String(length), 10);
	// what was left out of this time because no clock has it is left out of the other one
	const late = BigInt(String(begin)) - snapped(spanOf(spec), interval).from;
	const from = snapped(other, interval).from + late;
	if (from < 0n) return null;
	const until = from + BigInt(String(end)) - BigInt(String(begin));
	const times = { from: begin, to: end, other_from: String(from), other_to: String(until), interval: length };
	return { recording, statistic, source, ...times, top: TOP };
}

function contentOf(spec: GraphSpec, found: Difference | ChangesAnswer): Changes | PairedSeries | null {
	return found.kind === "difference" ? changes(spec, found) : pairedSeries(spec, found);
}

function changes(spec: GraphSpec, answer: Difference): Changes | null {
	const group = answer.group;
	if (!group) return null;
	const axis = wholeAxis(group, spec.scale || group.y_scale, spec.crop);
	return new Changes({
		answer,
		group,
		axis: spec.rows ? { ...axis, ...spec.rows } : axis,
		kind: spec.colour,
		row: (low, high) => ({ [group.y]: rowWords(low, high, group.unit, group.y) }),
		words: ({ change, count, other }) => ({
			difference: `${change > 0 ? "+" : ""}${quantity(change, UNITS[group.weight])}/s`,
			"this time": counted(count, group),
			"that time": counted(other, group),
		}),
	});
}

/** The colour that a value has in the graph above. */
const colourIn = (spec: GraphSpec, key: string): string =>
	key === "" ? colourOfNumber() : colourOfName(breakdownOf(spec.statistic), key);

function pairedSeries(spec: GraphSpec, answer: ChangesAnswer): PairedSeries {
	return new PairedSeries({
		answer,
		highlights: spec.highlights,
		mode: spec.mode,
		colour: (key) => colourIn(spec, key),
		words: (value) => rate(value, answer.unit),
		ticks: (high, height) => numberTicks(high, answer.unit, height),
		all: answer.statistic,
	});
}

/** By how much each value changed, the most first; a click compares it alone. */
function ChangeList({ spec, found }: { spec: GraphSpec; found: ChangesAnswer }) {
	const shown = (key: string) => spec.mode === "rainbow" || spec.highlights.includes(key);
	return (
		<>
			<div class="panel-head">
				<strong>{breakdownOf(found.statistic) || "change"}</strong>
				<span class="quiet">now, and since then</span>
			</div>
			<div
				class="values changes"
				role="listbox"
				aria-multiselectable="true"
				aria-label={`Changes of ${spec.statistic}`}
				tabIndex={-1}
				onKeyDown={walk}
			>
				{found.keys.map((each, i) => (
					<button
						key={each.key}
						type="button"
						role="option"
						aria-selected={spec.highlights.includes(each.key)}
						class="value change"
						tabIndex={i === 0 ? 0 : -1}
						title={`${visible(each.key)}: ${changeTitle(each, found.unit)}`}
						onClick={(event) => choose(spec, each.key, event.shiftKey || event.ctrlKey || event.metaKey)}
					>
						<Swatch colour={shown(each.key) ? colourIn(spec, each.key) : ""} />
						<ChangeWords name={each.key} change={each} unit={found.unit} />
					</button>
				))}
				<button type="button" class="value change rest" disabled title={changeTitle(found.whole, found.unit)}>
					<Swatch colour={found.keys.some((each) => shown(each.key)) ? "" : colourIn(spec, "")} />
					<ChangeWords name={allOf(found)} change={found.whole} unit={found.unit} />
				</button>
				{found.left > 0 && <p class="quiet">{found.left} more changed less</p>}
			</div>
		</>
	);
}

/** What all together is called; of what doesn't add up it is not the sum of what is listed. */
const allOf = ({ keys, adds_up }: ChangesAnswer): string =>
	keys.length === 0 ? "all" : adds_up ? "all together" : "on the whole";

function ChangeWords({ name, change, unit }: { name: string; change: Change; unit: string }) {
	return (
		<>
			<span class="name">{visible(name)}</span>
			<span class="number">{rate(change.mean, unit)}</span>
			<span class="number by">{changeWords(change)}</span>
		</>
	);
}

/** A change in short form: an arrow with the share, or that it is new or missing. */
export function changeWords({
	mean,
	other_mean,
	change,
	ratio,
}: Omit<Change, "key" | "values" | "other_values">): string {
	if (mean === null || other_mean === null || change === null) return "not known";
	if (change === 0) return "same";
	if (ratio === null) return "new";
	if (mean === 0) return "gone";
	const by = ratio >= 10 ? `× ${quantity(ratio, "", 2)}` : percent(Math.abs(ratio - 1));
	return `${change > 0 ? "▲" : "▼"} ${by}`;
}

/** The same in full. */
export function changeTitle({ mean, other_mean, change }: Change, unit: string): string {
	const by = change === null ? "" : `: ${change > 0 ? "+" : ""}${rate(change, unit)}`;
	return `now ${rate(mean, unit)}, then ${rate(other_mean, unit)}${by}`;
}
