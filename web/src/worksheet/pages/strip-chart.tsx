// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { FEW, filledInterval, MANY, snapped } from "../../api/columns";
import { heldOverviewInterval } from "../../api/offline";
import { question, type Words } from "../../api/question";
import { eventRate } from "../../api/resolution";
import { catalogue, facts, recording, type Span, whole } from "../../api/worksheet";
import { timeTicks } from "../../canvas/clock";
import { hueOf, placeOf } from "../../canvas/hues";
import { flooring, leastOf, mostOf, recordedPart, wholeColumns } from "../../canvas/lines";
import type { YScale } from "../../canvas/spaces";
import { quantity, thousands } from "../../canvas/ticks";
import type { PercentilesAnswer, SeriesAnswer } from "../../generated/api";
import { theme } from "../../lib/theme";
import { useAsked } from "../graph/use-answer";
import { rate } from "../graph/values";
import { lengthOf, momentWords } from "../times";

/** The lane of the rate is of the first of these that was recorded, and that of p99 of its latencies. */
const SOURCES = [
	{ group: "io", name: "IOPS" },
	{ group: "file", name: "file calls" },
	{ group: "nfs", name: "NFS calls" },
	{ group: "app", name: "I/Os of programs" },
];
/** Maximum columns of the strip, minimum pixels of a column, and interval of requests for a growing strip, in ms. */
const COLUMNS = 1200;
const WIDE = 2;
const PACE = 10_000;
/** Half of a mark of the clock has so many pixels. */
const HALF_MARK = 28;
/** Lanes are so high, of a strip that is 1000 wide. */
const HEIGHT = 100;

interface Columns extends Pick<SeriesAnswer, "t0_ns" | "interval_ns" | "values"> {
	/** The columns, (first, one past the last), of which all was recorded; only these decide how high the lane is. */
	complete: readonly [number, number];
}

/** Values over all of the recorded time, and how they are written. */
export interface Lane {
	name: string;
	columns: Columns;
	colour: string;
	/** Of its height: one stall must not flatten all other latencies. */
	scale: YScale;
	words: (value: number) => string;
}

/** What the strip shows, and which records were lost: column and count. */
export interface Strip {
	lanes: Lane[];
	lost: readonly (readonly [number, number])[];
}

/** What the strip asks for: a shared file holds it, whatever part of the time it shows. */
export let overviewQuestions: readonly string[] = [];

/** The rate and p99 of the whole recording. p99 is requested when the rate is known. */
export function useStrip(): Strip {
	const all = whole.value;
	const source = SOURCES.find(({ group }) =>
		catalogue.value.some((entry) => entry.name === `${group}.ops` && entry.available),
	);
	const operations = source && catalogue.value.find((entry) => entry.name === `${source.group}.ops`);
	const readable = (facts.value?.problem ?? "") === "";
	const rateWords =
		source && operations && readable
			? { recording: recording.value, statistic: operations.name, ...timeOf(all, operations, FEW) }
			: null;
	const { found: rates } = useAsked<SeriesAnswer>("query", rateWords, PACE);
	const mapped = operations?.breakdowns.some(({ field }) => field === "latency") ?? false;
	const statistic = `${source?.group}.ops[latency]`;
	const tailWords =
		rates && mapped && operations
			? {
					recording: recording.value,
					statistic,
					...timeOf(all, { ...operations, name: statistic }, MANY, "percentiles"),
				}
			: null;
	const { found: tails } = useAsked<PercentilesAnswer>("query", tailWords, PACE);
	overviewQuestions = [rateWords, tailWords].flatMap((words) => (words ? [question("query", words)] : []));
	const dark = theme.value === "dark";
	return useMemo(() => {
		const lanes: Lane[] = [];
		if (source && rates)
			lanes.push({
				name: source.name,
				columns: {
					...rates,
					complete: wholeColumns(recordedPart(rates), rates.interval_ns, rates.values.length),
				},
				colour: hueOf(0, dark),
				scale: "linear",
				words: (value) => rate(value, rates.unit),
			});
		const p99 = tails?.keys.find(({ key }) => key === "p99");
		if (tails && p99)
			lanes.push({
				name: "p99",
				columns: { ...tails, values: p99.values, complete: [0, p99.values.length] },
				colour: hueOf(placeOf("percentiles", "p99"), dark),
				scale: "log",
				words: (value) => quantity(value, tails.unit, 3),
			});
		return { lanes, lost: rates?.lost_by_column ?? [] };
	}, [source, rates, tails, dark]);
}

/** The columns of the strip: as many as it has pixels for, as long as there are so many I/Os in one. */
function timeOf(all: Span, { name, source }: { name: string; source: string }, enough: number, drawn?: string): Words {
	const columns = Math.min(COLUMNS, innerWidth / WIDE);
	// a file was made on a screen of another width
	const interval =
		heldOverviewInterval(name, drawn) || filledInterval(lengthOf(all) / columns, enough, eventRate(source, all));
	const { from, until } = snapped(all, interval);
	const time = { from: String(from < 0n ? 0n : from), to: String(until), interval: `${interval}ns` };
	return drawn ? { ...time, drawn } : time;
}

const largest = ({ values, complete }: Columns): number => mostOf([values], ...complete);

/** A lane's largest value; on a logarithmic scale also the value at its foot. */
function heightWords({ columns, scale, words }: Lane): string {
	const most = words(largest(columns));
	return scale === "log" ? `${words(footOf(columns))} – ${most}` : `≤ ${most}`;
}

/** The value at the foot of a logarithmic lane: a round one, at least a decade below the largest. */
const footOf = (columns: Columns): number =>
	flooring(Math.min(leastOf([columns.values], ...columns.complete), largest(columns) / 10));

/** The value of a moment in words, "" where nothing is known of it. */
function wordsAt({ columns, words }: Lane, moment: number): string {
	const value = columns.values[Math.floor((moment - columns.t0_ns) / columns.interval_ns)] ?? null;
	return value === null ? "" : words(value);
}

/** What happened at a moment, by name. */
export function stripWords({ lanes, lost }: Strip, moment: number, all: Span): Record<string, string> {
	const values = lanes.map((lane) => [lane.name, wordsAt(lane, moment)] as const).filter(([, words]) => words);
	const columns = lanes[0]?.columns;
	const place = columns ? Math.floor((moment - columns.t0_ns) / columns.interval_ns) : 0;
	const count = lost.find(([column]) => column === place)?.[1];
	return {
		time: momentWords(moment, lengthOf(all) / COLUMNS, all.from),
		...Object.fromEntries(values),
		...(count === undefined ? {} : { lost: count === 0 ? "an unknown number" : thousands(count) }),
	};
}

/** One lane above the other over all of the recorded time, with marks of the clock below. The height of a lane is its largest value. */
export function StripChart({ strip, all }: { strip: Strip; all: Span }) {
	const { lanes, lost } = strip;
	const ticks = timeTicks(all.from, 0, lengthOf(all), innerWidth < 640 ? 4 : 10);
	const columns = lanes[0]?.columns;
	return (
		<>
			<div class="lanes">
				{lanes.map((lane) => (
					<div class="lane" key={lane.name}>
						<svg viewBox={`0 0 1000 ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
							<path d={pathOf(lane, all)} fill={lane.colour} />
							<path d={pathOf(lane, all, false)} fill={lane.colour} fill-opacity={FAINT} />
						</svg>
						<span class="lane-name">
							{lane.name} <strong>{heightWords(lane)}</strong>
						</span>
					</div>
				))}
				{columns && lost.length > 0 && (
					<svg class="losses" viewBox="0 0 1000 1" preserveAspectRatio="none" aria-hidden="true">
						<path d={lossPath(columns, lost, all)} />
					</svg>
				)}
			</div>
			<div class="clock" aria-hidden="true">
				{ticks.map(({ value, label }) => (
					<span key={value} class={edgeOf(value / lengthOf(all))} style={{ left: `${(100 * value) / lengthOf(all)}%` }}>
						{label}
					</span>
				))}
			</div>
		</>
	);
}

/** A mark of the clock near an end of the strip is written inside of it. */
function edgeOf(place: number): string {
	const edge = HALF_MARK / innerWidth;
	return place < edge ? "first" : place > 1 - edge ? "last" : "";
}

/** What the strip shows in words. */
export const stripLabel = ({ lanes, lost }: Strip): string =>
	[
		...lanes.map((lane) => `${lane.name} at most ${lane.words(largest(lane.columns))}`),
		lost.length > 0 && `records lost at ${lost.length} ${lost.length === 1 ? "moment" : "moments"}`,
	]
		.filter(Boolean)
		.join(", ");

/** How strong columns are that are not complete: their rate is that of a few I/Os. */
const FAINT = 0.45;

/**
 * The area below the values, 1000 wide; nothing where nothing was recorded. A value that is not zero is at least 2 high.
 * `complete`: of columns that are complete, or of the others.
 */
export function pathOf(
	{ columns, scale }: Pick<Lane, "columns" | "scale">,
	{ from, until }: Span,
	complete = true,
): string {
	const { t0_ns, interval_ns, values } = columns;
	const [first, past] = columns.complete;
	const most = largest(columns);
	if (!(most > 0) || until <= from) return "";
	const x = (column: number) => placeIn(t0_ns + column * interval_ns, from, until);
	const foot = scale === "log" ? footOf(columns) : 0;
	const share = (value: number) => (foot > 0 ? Math.log(value / foot) / Math.log(most / foot) : value / most);
	const top = (value: number) =>
		value > 0 ? Math.max(0, Math.min(HEIGHT - 2, HEIGHT - 0.95 * HEIGHT * share(value))) : HEIGHT;
	return values
		.map((value, column) =>
			value === null || complete !== (column >= first && column < past)
				? ""
				: `M${x(column)} ${HEIGHT}V${top(value).toFixed(1)}H${x(column + 1)}V${HEIGHT}Z`,
		)
		.join("");
}

/** The columns in which records were lost, 1 high and at least 2 wide. */
function lossPath({ t0_ns, interval_ns }: Columns, lost: Strip["lost"], { from, until }: Span): string {
	return lost
		.map(([column]) => {
			const [left, right] = [column, column + 1].map((edge) =>
				Number(placeIn(t0_ns + edge * interval_ns, from, until)),
			) as [number, number];
			return `M${left} 0H${Math.max(right, left + 2)}V1H${left}Z`;
		})
		.join("");
}

const placeIn = (moment: number, from: number, until: number): string =>
	Math.min(1000, Math.max(0, (1000 * (moment - from)) / (until - from))).toFixed(1);
