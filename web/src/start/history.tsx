// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { ask } from "../api/client";
import type { HistoryAnswer, HistorySeries } from "../generated/api";
import { messageOf } from "../lib/errors";
import { visible } from "../lib/names";
import { cellWords, countWords, signedWords } from "../lib/words";
import { ChangePanel } from "./change";
import { HistoryChart } from "./history-chart";

/** A change of a series: of its mean or of its noise. */
export type Change = HistorySeries["changes"][number] | HistorySeries["noise_changes"][number];

/** "−41.5 % [−45, −38]", or "noise × 2.1 [1.5, 3]". */
export function changeWords(change: Change): string {
	if ("ratio" in change) {
		const [ratio, low, high] = [change.ratio, change.low, change.high].map((value) => Number(value.toPrecision(3)));
		return `noise × ${ratio} [${low}, ${high}]`;
	}
	return `${signedWords(change.change)} ${change.unit} [${signedWords(change.low)}, ${signedWords(change.high)}]`;
}

/** "trend −9.5 % [−10, −9] from n0 to n19": a steady slope over all results. */
export function trendWords(trend: NonNullable<HistorySeries["trend"]>, label: (entry: number) => string): string {
	const [change, low, high] = [trend.change, trend.low, trend.high].map(signedWords);
	return `trend ${change} ${trend.unit} [${low}, ${high}] from ${label(trend.first)} to ${label(trend.last)}`;
}

/** Whether a change is for the better or the worse, "" where that is not known. */
export const toneOf = (change: Change): "better" | "worse" | "" =>
	"ratio" in change || change.improves === null ? "" : change.improves ? "better" : "worse";

/** A history: a chart of each series with its changes, those with changes first. */
export function HistoryPage({ name }: { name: string }) {
	const [answer, setAnswer] = useState<HistoryAnswer | null>(null);
	const [metric, setMetric] = useState("");
	const [problem, setProblem] = useState("");
	useEffect(() => {
		const stop = new AbortController();
		ask<HistoryAnswer>("history", { history: name, metric }, stop.signal)
			.then((now) => {
				setAnswer(now);
				setProblem("");
			})
			.catch((error: unknown) => {
				if (!stop.signal.aborted) setProblem(messageOf(error));
			});
		return () => stop.abort();
	}, [name, metric]);
	const titles = new Map(answer?.metrics.map((each) => [each.name, each.title]));
	return (
		<section class="history" aria-labelledby="history">
			<div class="heading">
				<h2 id="history">History {visible(name)}</h2>
				{answer && (
					<label>
						Metric{" "}
						<select value={metric} onChange={(event) => setMetric(event.currentTarget.value)}>
							<option value="">first headline metrics</option>
							{answer.metrics.map((each) => (
								<option key={each.name} value={each.name}>
									{each.title} ({each.name})
								</option>
							))}
						</select>
					</label>
				)}
			</div>
			{problem && (
				<p class="problem" role="status">
					{problem}
				</p>
			)}
			{!answer && !problem && <p class="quiet">Searching for changes.</p>}
			{answer && <p class="summary">{summaryWords(answer)}</p>}
			{answer?.shown.map((shown) => (
				<div key={shown} class="metric">
					<h3>
						{titles.get(shown) ?? shown} <code>{shown}</code>
					</h3>
					<div class="charts">
						{answer.series
							.filter((series) => series.metric === shown)
							.map((series) => (
								<Series key={series.cell} answer={answer} series={series} />
							))}
					</div>
				</div>
			))}
		</section>
	);
}

/** How many series changed, over which series q is, and how many are left out. */
export function summaryWords({ entries, series, of, left }: HistoryAnswer): string {
	const changed = series.filter((each) => each.changes.length > 0).length;
	const trending = series.filter((each) => each.trend !== null).length;
	const noisy = series.filter((each) => each.noise_changes.length > 0).length;
	const words = [
		`${countWords(entries.length, "result")}, ${countWords(of, "series", "series")}.`,
		`${changed === 0 ? "None" : changed} with a significant change of the mean, ${trending === 0 ? "none" : trending} with a trend, ${noisy === 0 ? "none" : noisy} with a change of the noise`,
		"(q ≤ 0.05 over all of these series).",
		left > 0 ? `${countWords(left, "series", "series")} not shown; iolab history show has all.` : "",
	];
	return words.filter(Boolean).join(" ");
}

function Series({ answer, series }: { answer: HistoryAnswer; series: HistorySeries }) {
	const [chosen, setChosen] = useState<number | null>(null);
	const changes: Change[] = [...series.changes, ...series.noise_changes].sort(
		(a, b) => series.entries.indexOf(a.after) - series.entries.indexOf(b.after),
	);
	const labels = new Map(answer.entries.map((entry) => [entry.number, entry.label]));
	const change = chosen === null ? undefined : changes[chosen];
	const choose = (place: number) => setChosen(place === chosen ? null : place);
	return (
		<figure class={`series ${change ? "open" : ""}`}>
			<figcaption>{cellWords(series.variant, series.factors)}</figcaption>
			<HistoryChart answer={answer} series={series} changes={changes} choose={choose} />
			{series.trend && <p class="trend">{trendWords(series.trend, (entry) => labels.get(entry) ?? String(entry))}</p>}
			{changes.length > 0 && (
				<ul class="changes">
					{changes.map((each, place) => (
						<li key={`${each.after} ${"ratio" in each}`}>
							<button type="button" aria-expanded={place === chosen} class={toneOf(each)} onClick={() => choose(place)}>
								{changeWords(each)} at {labels.get(each.after)}
							</button>
						</li>
					))}
				</ul>
			)}
			{change && <ChangePanel answer={answer} series={series} change={change} />}
		</figure>
	);
}
