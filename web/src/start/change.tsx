// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { ask } from "../api/client";
import type { CellRun, CellRuns, HistoryAnswer, HistoryEntry, HistorySeries } from "../generated/api";
import { reportAddress, worksheetAddress } from "../lib/addresses";
import { messageOf } from "../lib/errors";
import { visible } from "../lib/names";
import { dateWords, valueWords } from "../lib/words";
import type { Change } from "./history";
import { RunMaps } from "./run-maps";

/** Both sides of a change: the runs before and after it, with their heat maps, and what else changed. */
export function ChangePanel({
	answer,
	series,
	change,
}: {
	answer: HistoryAnswer;
	series: HistorySeries;
	change: Change;
}) {
	const sides = [change.before, change.after].map((number) => answer.entries.find((entry) => entry.number === number));
	const [runs, setRuns] = useState<(CellRuns | null)[]>([null, null]);
	const [problem, setProblem] = useState("");
	useEffect(() => {
		const stop = new AbortController();
		const words = { history: answer.name, metric: series.metric, cell: series.cell };
		Promise.all(
			[change.before, change.after].map((entry) => ask<CellRuns>("cell-runs", { ...words, entry }, stop.signal)),
		)
			.then(setRuns)
			.catch((error: unknown) => {
				if (!stop.signal.aborted) setProblem(messageOf(error));
			});
		return () => stop.abort();
	}, [answer.name, series, change.before, change.after]);
	const middle = runs.map((side) => middleRun(side?.runs ?? []));
	return (
		<div class="change">
			{problem && <p class="problem">{problem}</p>}
			<div class="sides">
				{sides.map((entry, i) => entry && <Side key={entry.number} entry={entry} runs={runs[i] ?? null} />)}
			</div>
			<RunMaps runs={middle} />
			{change.environment.length > 0 && (
				<div class="table">
					<table>
						<caption>What else changed</caption>
						<thead>
							<tr>
								<th scope="col">fact</th>
								<th scope="col">before</th>
								<th scope="col">after</th>
							</tr>
						</thead>
						<tbody>
							{change.environment.map(({ name, before, after }) => (
								<tr key={name}>
									<th scope="row">{visible(name)}</th>
									<td>{visible(before) || "not known"}</td>
									<td>{visible(after) || "not known"}</td>
								</tr>
							))}
						</tbody>
					</table>
				</div>
			)}
		</div>
	);
}

/** Of the runs that were recorded and count, the one with the middle value. */
export function middleRun(runs: readonly CellRun[]): CellRun | null {
	const usable = runs.filter((run) => run.recording !== null && run.graph !== null && run.verdict !== "INVALID");
	const ordered = usable.toSorted((a, b) => (a.value ?? 0) - (b.value ?? 0));
	return ordered[Math.floor((ordered.length - 1) / 2)] ?? null;
}

function Side({ entry, runs }: { entry: HistoryEntry; runs: CellRuns | null }) {
	const tags = Object.entries(entry.tags).map(([name, value]) => `${name}=${value}`);
	return (
		<div class="side">
			<h4>{entry.served ? <a href={reportAddress(entry.served)}>{visible(entry.label)}</a> : visible(entry.label)}</h4>
			<p class="quiet">{[`${dateWords(entry.measured_ns)} UTC`, ...tags.map(visible)].join(" · ")}</p>
			{runs?.problem && <p class="problem">{runs.problem}</p>}
			<ul class="runs">
				{runs?.runs.map((run) => (
					<li key={run.run}>
						<span class={`badge ${run.verdict.toLowerCase()}`}>{run.verdict}</span>{" "}
						{entry.served ? <a href={reportAddress(entry.served, run.run)}>{run.run}</a> : run.run}{" "}
						{valueWords(run.value, runs.unit)}{" "}
						{run.recording && (
							<a href={worksheetAddress(run.recording, run.from_ns, run.until_ns, run.graph ?? "")}>I/Os</a>
						)}
					</li>
				))}
			</ul>
		</div>
	);
}
