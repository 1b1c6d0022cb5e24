// SPDX-License-Identifier: Apache-2.0
import { add, catalogue, facts, recordings } from "../../api/worksheet";
import { Thumbnail } from "../../heatmap/thumbnail";
import { choicesOf, suggestions } from "../choices";
import { opened } from "../dialogs/dialogs";

const WORDS: Record<string, [string, string]> = {
	"io.ops[latency]": ["How long does I/O take?", "A heat map: every I/O by when it ended and how long it took."],
	"io.ops[op]": ["How much I/O is there?", "Operations a second: reads, writes and the rest on each other."],
	"io.ops[offset]": ["Sequential or random?", "A heat map: where on the device each I/O lies."],
	"io.bytes[process]": ["Who does it?", "Bytes a second by process."],
	"file.ops[latency]": [
		"How long do programs wait?",
		"A heat map: every system call on a file by its latency, with the cache.",
	],
	"file.bytes[file]": ["Which files?", "Bytes a second by file, as programs read and write them."],
};

/** A worksheet without a graph: one click from the first one. */
export function Empty() {
	const offered = suggestions(choicesOf(catalogue.value));
	const here = facts.value;
	// what can't be read holds nothing that could be chosen, and the page says why
	if (here?.problem && offered.length === 0) return null;
	return (
		<div class="welcome">
			<h2>{here?.live ? `What ${here.host || here.name} does right now` : `What ${here?.name ?? "this"} holds`}</h2>
			<p>
				Choose a first statistic. Next to a graph, click a value to highlight it, and its handle to break it down. Drag
				over a heat map to list the processes, files and devices of its I/Os.
			</p>
			<div class="cards">
				{offered.map((each) => (
					<button key={each.statistic} type="button" data-choice={each.statistic} onClick={() => add(each.statistic)}>
						{here && <Thumbnail recording={here.name} statistic={each.statistic} live={here.live} />}
						<strong>{WORDS[each.statistic]?.[0] ?? each.statistic}</strong>
						<span>{WORDS[each.statistic]?.[1] ?? each.about}</span>
						<code>{each.statistic}</code>
					</button>
				))}
				<button type="button" class="other" onClick={() => (opened.value = "add")}>
					<strong>Something else</strong>
					<span>All statistics, by group or by typing.</span>
					<kbd>+</kbd>
				</button>
			</div>
			{offered.length === 0 && (
				<p class="problem" role="status">
					{here?.live ? "Nothing was recorded yet: it will be here once something is." : "Nothing was recorded."}
				</p>
			)}
			{recordings.value.length > 1 && <p class="quiet">Other recordings can be chosen above.</p>}
		</div>
	);
}
