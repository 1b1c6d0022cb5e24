// SPDX-License-Identifier: Apache-2.0
import type { ReasonGroup, Sentence } from "../generated/report";
import { showRuns } from "./comparison";
import { Badge, Part, RunButton } from "./parts";
import { filterFor } from "./run-table";
import { go, report } from "./state";

/** Maximum number of runs named next to a reason; the others are in the table of runs. */
const NAMED = 4;

/** What the numbers say, in words. */
export function Summary() {
	return (
		<Part id="summary" title="Summary in words" folded>
			{report.value.summary.map((part) => (
				<div class="statement" key={part.title}>
					<h3>{part.title}</h3>
					<ul>
						{part.sentences.map((sentence) => (
							<Statement key={sentence.text} sentence={sentence} />
						))}
					</ul>
				</div>
			))}
		</Part>
	);
}

/** One sentence; the metric that it begins with leads to its numbers. */
export function Statement({ sentence }: { sentence: Sentence }) {
	const target = report.value.sections.find((section) => section.name === sentence.section);
	return (
		<li class={`tone-${sentence.tone}${sentence.under ? " under" : ""}`}>
			{target && sentence.text.startsWith(target.title) ? (
				<>
					<a href={`#metric=${encodeURIComponent(target.name)}`} onClick={(event) => showNumbers(event, target.name)}>
						{target.title}
					</a>
					{sentence.text.slice(target.title.length)}
				</>
			) : (
				sentence.text
			)}
		</li>
	);
}

/** Lead to the tables and charts of a metric. */
export function showNumbers(event: Event, metric: string): void {
	event.preventDefault();
	go({ metric, run: "" });
	document.getElementById("comparison")?.scrollIntoView();
	document.getElementById("metric")?.focus({ preventScroll: true });
}

/** How many runs can be trusted how far, and why. */
export function Verdicts() {
	const { levels, reasons, runs } = report.value;
	const total = runs.ids.length;
	return (
		<Part id="verdicts" title="Verdicts">
			<ul class="levels">
				{levels.map((one) => (
					<li key={one.level} class={one.runs === 0 ? "none" : one.level.toLowerCase()}>
						<button
							type="button"
							disabled={one.runs === 0}
							title={`${one.runs} of ${total} runs ${one.level}: show them`}
							onClick={() => showRuns(`verdict:${one.level}`)}
						>
							<strong>{one.runs}</strong>
							<Badge level={one.level} />
							<span class="meaning">{one.meaning}</span>
						</button>
					</li>
				))}
			</ul>
			{reasons.length > 0 && (
				<section class="table">
					<table class="reasons stacked">
						<caption>What the gates said</caption>
						<thead>
							<tr>
								<th scope="col">level</th>
								<th scope="col">gate</th>
								<th scope="col">in words, of the first run</th>
								<th scope="col">runs</th>
							</tr>
						</thead>
						<tbody>
							{reasons.map((reason) => (
								<Reason key={`${reason.code}-${reason.level}`} reason={reason} />
							))}
						</tbody>
					</table>
				</section>
			)}
		</Part>
	);
}

function Reason({ reason }: { reason: ReasonGroup }) {
	const runs = report.value.runs;
	return (
		<tr>
			<td>
				<Badge level={reason.level} />
			</td>
			<th scope="row">
				<code>{reason.code}</code>
			</th>
			<td class="words">{reason.text}</td>
			<td class="words">
				{reason.runs.slice(0, NAMED).map((run, i) => (
					<span key={run}>
						{i > 0 && ", "}
						<RunButton id={runs.ids[run] ?? ""} />
					</span>
				))}
				{reason.runs.length > NAMED && (
					<>
						{" "}
						<button type="button" class="link" onClick={() => showRuns(filterFor(runs, reason.runs))}>
							and {reason.runs.length - NAMED} more
						</button>
					</>
				)}
			</td>
		</tr>
	);
}
