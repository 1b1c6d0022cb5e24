// SPDX-License-Identifier: Apache-2.0
import { untracked } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import { wordsOf } from "../../api/feed";
import type { Words } from "../../api/question";
import { add, catalogue, follows, type GraphSpec, whole } from "../../api/worksheet";
import { percent, quantity } from "../../canvas/ticks";
import type { DimensionShares, Who } from "../../generated/api";
import type { HeatMapGroup } from "../../generated/maps";
import { Choice } from "../../lib/controls";
import { breakdownOf, brokenDown, filtered, visible } from "../../lib/names";
import { spanWords } from "../times";
import { zoomTo } from "./actions";
import { bounds, rangeSteps } from "./drill";
import { Drill } from "./list";
import { type Mark, stateOf } from "./state";
import { useAsked, useRested } from "./use-answer";
import { counted, rowWords } from "./values";
import "./who.css";

/** Values of a dimension that are listed. */
const MOST = 8;
/** A dimension in which so little is apart is not worth a table. */
const TELLING = 0.005;
/** A question about a marked part is sent after this time without a change, in ms. */
const REST = 200;

/** What was marked: in a graph, or in its difference from another time, which begins `shift` ns later. */
export interface Marked {
	spec: GraphSpec;
	/** The id of the state that holds the mark. */
	marks?: string;
	/** The map of the part; null if it has none. */
	map: HeatMapGroup | null;
	shift?: number;
}

/** A marked part: zoom to it, and for a map list the values of its I/Os; a click on a value adds a graph of only these. */
export function WhoIsThis({ spec, map, marks = spec.id, shift = 0 }: Marked) {
	const state = stateOf(marks);
	const [then, setThen] = useState(false);
	const moved = then ? shift : 0;
	const here = state.mark.value;
	const mark = useMemo(() => here && { ...here, from: here.from + moved, until: here.until + moved }, [here, moved]);
	const unit = map && map.y !== "utilization" ? map.unit : null;
	const box = useMemo(() => (mark && unit !== null ? boxWords(mark, unit) : null), [mark, unit]);
	// no question is sent while a part is being marked
	const words = useRested(() => box && whoWords(spec, box, moved), REST, [spec, box, moved], Number.POSITIVE_INFINITY);
	const same = useAsked<Who>("who", (box && words?.same) ?? null, 0, true);
	// of all values of a time there is nothing else at that time: the rest of the time shown is compared
	const alone = same.found !== null && !same.stale && same.found.inside > 0 && same.found.outside === 0;
	const other = useAsked<Who>("who", (box && alone && words?.shown) || null, 0, true);
	const { found, stale, problem } = alone ? other : same;
	const old = stale || !box || !words || Object.entries(box).some(([name, value]) => words.same[name] !== value);
	if (!mark) return null;
	const unmark = () => {
		state.mark.value = null;
	};
	const zoom = (inTime: boolean) => {
		zoomTo(spec, mark, inTime);
		unmark();
	};
	return (
		<section class="who" aria-label="The marked part">
			<div class="who-head">
				<strong>
					{spanWords({ from: mark.from, until: mark.until }, whole.value.from)}
					{map && `, ${rowWords(mark.low, mark.high, map.unit, map.y)}`}
				</strong>
				{shift !== 0 && (
					<Choice
						label="values of"
						name="who-when"
						values={["this time", "that time"] as const}
						value={then ? "that time" : "this time"}
						onChange={(when) => setThen(when === "that time")}
					/>
				)}
				<span class="room" />
				<button type="button" class="small zoom-mark" title="z" onClick={() => zoom(true)}>
					Zoom to it
				</button>
				{map && (
					<button type="button" class="small" onClick={() => zoom(false)}>
						Zoom to its values
					</button>
				)}
				{map && map.y !== "utilization" && shift === 0 && (
					<button
						type="button"
						class="small list-ios"
						title="The single I/Os of the marked part (I)"
						onClick={() => {
							stateOf(spec.id).listed.value = mark;
						}}
					>
						List its I/Os
					</button>
				)}
				{map && map.y !== "utilization" && <Only spec={spec} mark={mark} unit={map.unit} />}
				<button type="button" class="small" title="Escape" onClick={unmark}>
					Unmark
				</button>
			</div>
			{problem && <p class="problem">{problem}</p>}
			{box && !problem && (
				<Shares spec={spec} mark={mark} unit={map?.unit ?? ""} found={found} stale={old} alone={alone} />
			)}
		</section>
	);
}

/** The marked rectangle, as parameters. */
export function boxWords(mark: Mark, unit: string): Words {
	const bound = (value: number) => `${Math.max(0, Math.round(value))}${unit === "ns" ? "ns" : "B"}`;
	return {
		from: Math.round(mark.from),
		to: Math.round(mark.until),
		low: bound(mark.low),
		high: bound(mark.high),
	};
}

/**
 * Who issued the marked I/Os, compared with the others of the same time, and with all others that are shown; of a graph that follows, of those
 * shown at the time of the question. An hour of which a second is marked says what else that hour did, not what makes the marked ones slow.
 */
function whoWords(spec: GraphSpec, box: Words, moved: number): { recording: Words[string]; same: Words; shown: Words } {
	const { recording, statistic, source, from, to } = follows.peek() ? untracked(() => wordsOf(spec)) : wordsOf(spec);
	const around = (moment: Words[string]) => String(atLeast0(BigInt(String(moment)) + BigInt(Math.round(moved))));
	const common = { recording, statistic, source, ...box, top: MOST };
	return {
		recording,
		same: { ...common, around_from: box.from, around_to: box.to },
		shown: { ...common, around_from: around(from), around_to: around(to) },
	};
}

const atLeast0 = (moment: bigint) => (moment < 0n ? 0n : moment);

/** The I/Os of the marked values as a graph of their own. */
function Only({ spec, mark, unit }: { spec: GraphSpec; mark: Mark; unit: "ns" | "B" | "" }) {
	const about = { field: breakdownOf(spec.statistic), low: mark.low, high: mark.high };
	const [first] = rangeSteps(spec.statistic, about, unit === "ns" ? "ns" : "B", catalogue.value);
	if (!first) return null;
	return (
		<button type="button" class="small" title={first.statistic} onClick={() => add(first.statistic, spec.id)}>
			Only these values
		</button>
	);
}

function Shares({
	spec,
	mark,
	unit,
	found,
	stale,
	alone,
}: {
	spec: GraphSpec;
	mark: Mark;
	unit: "ns" | "B" | "";
	found: Who | null;
	stale: boolean;
	/** Whether no other I/O is of the marked time, so that those of other times are compared. */
	alone: boolean;
}) {
	if (!found) return <p class="quiet waiting">Who issued these?</p>;
	const telling = found.dimensions.filter((each) => each.telling >= TELLING);
	const same = found.dimensions.filter((each) => each.telling < TELLING).map((each) => each.field);
	return (
		<div class={stale ? "who-tables stale" : "who-tables"} role="status" aria-busy={stale}>
			<p>
				<strong>{sumWords(found.inside, found)}</strong> inside, {sumWords(found.outside, found)}{" "}
				{alone ? "at the other times shown" : "outside of it at the same time"}
			</p>
			{telling.map((dimension) => (
				<Dimension key={dimension.field} spec={spec} mark={mark} unit={unit} dimension={dimension} />
			))}
			{same.length > 0 && <p class="quiet">the same inside and outside: {same.join(", ")}</p>}
		</div>
	);
}

/** I/Os, or the bytes that they moved. */
const sumWords = (sum: number, { y, unit }: Who) => counted(sum, { y, weight: unit === "B" ? "bytes" : "count" });

function Dimension({
	spec,
	mark,
	unit,
	dimension,
}: {
	spec: GraphSpec;
	mark: Mark;
	unit: "ns" | "B" | "";
	dimension: DimensionShares;
}) {
	return (
		<table>
			<thead>
				<tr>
					<th scope="col">{dimension.field}</th>
					<td />
					<th scope="col">inside</th>
					<th scope="col">outside</th>
					<th scope="col">{quantity(100 * dimension.telling, "", 2)} % apart</th>
				</tr>
			</thead>
			<tbody>
				{dimension.values.map((share) => (
					<tr key={share.value}>
						<th scope="row" class={share.value.startsWith("/") ? "by-end" : undefined}>
							<button
								type="button"
								class="link"
								title={`Only these: ${narrow(spec, dimension.field, share.value, mark, unit)}`}
								onClick={() => add(narrow(spec, dimension.field, share.value, mark, unit), spec.id)}
							>
								{visible(share.value)}
							</button>
						</th>
						<td class="handle-cell">
							<Drill
								name={share.value}
								row={1}
								open={(x, y) => {
									const of = ranged(spec, mark, unit);
									stateOf(spec.id).menu.value = { x, y, about: { field: dimension.field, value: share.value, of } };
								}}
							/>
						</td>
						<td>{percent(share.share_inside ?? 0)}</td>
						<td>{percent(share.share_outside ?? 0)}</td>
						<td>
							<Bar inside={share.share_inside ?? 0} outside={share.share_outside ?? 0} />
						</td>
					</tr>
				))}
			</tbody>
		</table>
	);
}

/** Inside over outside as two bars. */
function Bar({ inside, outside }: { inside: number; outside: number }) {
	return (
		<svg class="share" viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">
			<rect class="inside" width={100 * inside} height="6" />
			<rect class="outside" y="7" width={100 * outside} height="5" />
		</svg>
	);
}

/** The statistic of the marked values alone. */
export function ranged(
	{ statistic }: Pick<GraphSpec, "statistic">,
	mark: Pick<Mark, "low" | "high">,
	unit: string,
): string {
	const own = breakdownOf(statistic);
	return `${brokenDown(statistic, "")}[${own}=${bounds(mark, unit === "ns" ? "ns" : "B")}][${own}]`;
}

/** The statistic of a value of a field within the marked values; a size is a range, which filters accept as it is. */
export const narrow = (
	spec: Pick<GraphSpec, "statistic">,
	field: string,
	value: string,
	mark: Pick<Mark, "low" | "high">,
	unit: string,
): string => filtered(ranged(spec, mark, unit), field, value);
