// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";
import { linearTicks, type Unit } from "../canvas/ticks";
import type { HistoryAnswer, HistorySeries } from "../generated/api";
import { dateWords, valueWords } from "../lib/words";
import { type Change, changeWords, toneOf } from "./history";

const HEIGHT = 190;
const [LEFT, RIGHT, TOP, BOTTOM] = [76, 14, 12, 40];
/** Points that are drawn one by one; of more only the line. */
const MOST_POINTS = 250;
const LABEL_WIDTH = 90;
const MARK_WIDTH = 16;

/** The values of a series over its results, with the mean or trend of each stretch and a line where it changed. */
export function HistoryChart(given: {
	answer: HistoryAnswer;
	series: HistorySeries;
	changes: readonly Change[];
	choose: (place: number) => void;
}) {
	const { answer, series, changes, choose } = given;
	const home = useRef<HTMLDivElement>(null);
	const [width, setWidth] = useState(560);
	useEffect(() => {
		if (!home.current) return undefined;
		const observer = new ResizeObserver(([entry]) => {
			if (entry) setWidth(Math.max(240, Math.round(entry.contentRect.width)));
		});
		observer.observe(home.current);
		return () => observer.disconnect();
	}, []);
	const { values, entries } = series;
	const byNumber = new Map(answer.entries.map((entry) => [entry.number, entry]));
	const { factor, unit, suffix } = scaleOf(series.unit);
	const [low, high] = rangeOf(values.map((value) => value * factor));
	const x = (place: number) => LEFT + ((place + 0.5) / values.length) * (width - LEFT - RIGHT);
	const y = (value: number) => TOP + (1 - (value * factor - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
	const label = (place: number) => byNumber.get(entries[place] ?? 0)?.label ?? "";
	const between = ({ before, after }: Change) => (x(entries.indexOf(before)) + x(entries.indexOf(after))) / 2;
	const ticks = linearTicks(low, high, 5, unit);
	const means = changes.filter((change) => !("ratio" in change)).map((change) => entries.indexOf(change.after));
	const points = values.map((value, place) => `${x(place).toFixed(1)},${y(value).toFixed(1)}`);
	return (
		<div ref={home} class="chart">
			<svg
				width={width}
				height={HEIGHT}
				viewBox={`0 0 ${width} ${HEIGHT}`}
				role="img"
				aria-label={`${values.length} values from ${valueWords(Math.min(...values), series.unit)} to ${valueWords(Math.max(...values), series.unit)}, ${changes.length} changes`}
			>
				{ticks.map((tick) => {
					const at = y(tick.value / factor);
					return (
						<g key={tick.value}>
							<line class="grid" x1={LEFT} x2={width - RIGHT} y1={at} y2={at} />
							<text x={LEFT - 6} y={at + 4} text-anchor="end">
								{tick.label}
								{suffix}
							</text>
						</g>
					);
				})}
				<polyline class="values" points={points.join(" ")} />
				{values.length <= MOST_POINTS &&
					values.map((value, place) => (
						<circle key={entries[place]} cx={x(place)} cy={y(value)} r={3}>
							<title>
								{label(place)}, {dateWords(byNumber.get(entries[place] ?? 0)?.measured_ns ?? null)} UTC:{" "}
								{valueWords(value, series.unit)}
							</title>
						</circle>
					))}
				{stretches(values, means).map(({ from, until, mean }) => {
					const [start, end] = lineEnds(mean, (until - from) / (values.length - 1), series.trend);
					return <line key={from} class="mean" x1={x(from - 0.5)} x2={x(until - 0.5)} y1={y(start)} y2={y(end)} />;
				})}
				{labelPlaces(values.length, width - LEFT - RIGHT, means).map((place) => (
					<text key={place} x={x(place)} y={HEIGHT - BOTTOM + 16} text-anchor="middle">
						{cut(label(place))}
					</text>
				))}
				<text class="axis" x={(LEFT + width - RIGHT) / 2} y={HEIGHT - 6} text-anchor="middle">
					results in order of time
				</text>
			</svg>
			{changes.map((change, place) => (
				<button
					key={`${change.after} ${"ratio" in change}`}
					type="button"
					class={`mark ${toneOf(change)} ${"ratio" in change ? "noise" : ""}`}
					style={{
						left: `${between(change) - MARK_WIDTH / 2}px`,
						top: `${TOP}px`,
						height: `${HEIGHT - TOP - BOTTOM}px`,
					}}
					title={`${changeWords(change)}: show both runs`}
					aria-label={`${changeWords(change)}: show both runs`}
					onClick={() => choose(place)}
				/>
			))}
		</div>
	);
}

/** Units of the axis: the factor of the tick values, and the suffix of the labels. */
function scaleOf(unit: string): { factor: number; unit: Unit; suffix: string } {
	if (unit === "s") return { factor: 1e9, unit: "ns", suffix: "" };
	if (unit === "B" || unit === "B/s") return { factor: 1, unit: "B", suffix: unit.slice(1) };
	if (unit === "1/s") return { factor: 1, unit: "", suffix: "/s" };
	return { factor: 1, unit: "", suffix: unit === "1" ? "" : ` ${unit}` };
}

/** The ends of the axis: the values with a little room; around a single value, 5 % of it. */
export function rangeOf(values: readonly number[]): [number, number] {
	const [least, most] = [Math.min(...values), Math.max(...values)];
	const room = most > least ? 0.08 * (most - least) : 0.05 * Math.abs(most) || 1;
	const low = least - room;
	return [least >= 0 && low < 0 ? 0 : low, most + room];
}

/** The stretches between changes of the mean, each with its mean. `starts`: places at which one begins. */
export function stretches(
	values: readonly number[],
	starts: readonly number[],
): { from: number; until: number; mean: number }[] {
	const ends = [0, ...starts.filter((start) => start > 0).toSorted((a, b) => a - b), values.length];
	return ends.slice(1).map((until, i) => {
		const from = ends[i] ?? 0;
		const part = values.slice(from, until);
		return { from, until, mean: part.reduce((sum, value) => sum + value, 0) / Math.max(1, part.length) };
	});
}

/** Where the line of a stretch begins and ends: at its mean, or with its share of the trend of the series around it. */
export function lineEnds(mean: number, share: number, trend: HistorySeries["trend"]): [number, number] {
	if (!trend) return [mean, mean];
	if (trend.unit === "%") {
		const half = (1 + trend.change / 100) ** (share / 2);
		return [mean / half, mean * half];
	}
	const half = (trend.change / (trend.unit === "points" ? 100 : 1)) * (share / 2);
	return [mean - half, mean + half];
}

/** Places with a label: the first after each change, then the first and the last, as far as there is room. */
export function labelPlaces(count: number, width: number, changes: readonly number[]): number[] {
	const room = (LABEL_WIDTH * count) / width;
	const places: number[] = [];
	for (const place of [...changes, 0, count - 1, Math.floor(count / 2)])
		if (place >= 0 && places.every((other) => Math.abs(other - place) >= room)) places.push(place);
	return places;
}

const cut = (label: string): string => (label.length > 14 ? `${label.slice(0, 6)}…${label.slice(-6)}` : label);
