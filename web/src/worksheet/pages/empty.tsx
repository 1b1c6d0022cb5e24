// SPDX-License-Identifier: Apache-2.0
import { useEffect } from "preact/hooks";
import { add, catalogue, facts, recordings } from "../../api/worksheet";
import { Thumbnail } from "../../heatmap/thumbnail";
import { titleOf } from "../../lib/titles";
import { choicesOf, suggestions } from "../choices";
import { opened } from "../dialogs/dialogs";
import "./empty.css";
import { offerOddities, SEARCHED, searchOddities } from "./odd";

const WORDS: Record<string, [string, string]> = {
	"io.ops[latency]": ["How long does I/O take?", "A heat map of each I/O: its end and its latency."],
	"io.ops[op]": ["How much I/O is there?", "Operations per second: reads, writes and others, stacked."],
	"io.ops[offset]": ["Sequential or random?", "A heat map of each I/O: its end and its offset on the device."],
	"io.bytes[process]": ["Which programs?", "Bytes per second by process."],
	"file.ops[latency]": [
		"How long do programs wait?",
		"A heat map of system calls on files. Those that the cache answered are included.",
	],
	"file.bytes[file]": ["Which files?", "Bytes per second that programs read and write, by file."],
};

/** Further statistics of a first look, where the recording can answer them. */
const MORE = [
	"io.utilization[device]",
	"io.ops[queue]",
	"io.ops[size]",
	"io.ops[device]",
	"file.ops[file]",
	"cpu.utilization[mode]",
];

/** A worksheet without a graph: one click from the first one. */
export function Empty() {
	const choices = choicesOf(catalogue.value);
	const offered = suggestions(choices);
	const others = MORE.filter((name) => choices.some((each) => each.statistic === name && !each.why));
	const here = facts.value;
	const events = Object.values(here?.events ?? {}).reduce((sum, count) => sum + count, 0);
	const isSearched =
		here?.kind !== "hosts" && here?.live === false && !here.problem && events > 0 && events <= SEARCHED;
	useEffect(() => {
		if (isSearched) offerOddities();
	}, [here?.name, isSearched]);
	// what can't be read holds nothing that could be chosen, and the page says why
	if (here?.problem && offered.length === 0) return null;
	return (
		<div class="welcome">
			<h2>{here?.live ? `I/O of ${here.host || here.name} now` : `I/O in ${here?.name ?? "this recording"}`}</h2>
			<p class="lead">
				Choose a first statistic. To drill down, click the handle of a value. Drag over a heat map to see which
				processes, files and devices its I/Os come from.
			</p>
			<div class="cards">
				{offered.map((each) => (
					<button key={each.statistic} type="button" data-choice={each.statistic} onClick={() => add(each.statistic)}>
						{here && <Thumbnail recording={here.name} statistic={each.statistic} live={here.live} named />}
						<strong>{WORDS[each.statistic]?.[0] ?? each.statistic}</strong>
						<span>{WORDS[each.statistic]?.[1] ?? each.about}</span>
						<code>{each.statistic}</code>
					</button>
				))}
				<div class="other">
					<button type="button" class="step" onClick={() => (opened.value = "add")}>
						<strong>All statistics</strong> <kbd>+</kbd>
						<span>By group, or typed: p99, queue depth, latency by disk.</span>
					</button>
					{offered.length > 0 && (
						<button type="button" class="step" onClick={() => void searchOddities()}>
							<strong>What is odd here?</strong> <kbd>O</kbd>
							<span>Search all statistics for what changed most in the time shown.</span>
						</button>
					)}
					{others.length > 0 && (
						<p>
							{others.map((name) => (
								<button key={name} type="button" class="small" title={titleOf(name)} onClick={() => add(name)}>
									<code>{name}</code>
								</button>
							))}
						</p>
					)}
				</div>
			</div>
			{offered.length === 0 && (
				<p class="problem" role="status">
					{here?.live ? "No I/O was recorded yet. This page shows it as soon as there is any." : "No I/O was recorded."}
				</p>
			)}
			{recordings.value.length > 1 && <p class="quiet">Select another recording at the top.</p>}
		</div>
	);
}
