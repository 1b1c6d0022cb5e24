// SPDX-License-Identifier: Apache-2.0
import type { RecordingFacts } from "../generated/api";
import { Thumbnail } from "../heatmap/thumbnail";
import { worksheetAddress } from "../lib/addresses";
import { visible } from "../lib/names";
import { countWords, dateWords } from "../lib/words";
import { served } from "./state";

/** Sources whose events have latencies, with the statistic that shows them. */
const MAPS: Record<string, string> = {
	block: "io.ops[latency]",
	syscall: "file.ops[latency]",
	nfs: "nfs.ops[latency]",
};

/** The statistic of a recording's picture. */
export function pictureOf({ events }: Pick<RecordingFacts, "events">): string {
	const source = Object.keys(MAPS).find((name) => (events[name] ?? 0) > 0);
	return MAPS[source ?? ""] ?? "io.ops[latency]";
}

/** Recordings that belong to no study, each with a picture of its latencies. */
export function RecordingList() {
	const { recordings } = served.value;
	if (recordings.length === 0) return null;
	return (
		<section aria-labelledby="recordings">
			<h2 id="recordings">Recordings</h2>
			<ul class="tiles">
				{recordings.map((recording) => (
					<Card key={recording.name} recording={recording} />
				))}
			</ul>
		</section>
	);
}

function Card({ recording }: { recording: RecordingFacts }) {
	const events = Object.values(recording.events).reduce((sum, count) => sum + count, 0);
	const dates = recording.clock === "realtime" ? dateWords(recording.first_ns) : "";
	return (
		<li class="tile">
			<h3>
				<a href={worksheetAddress(recording.name)}>{visible(recording.name)}</a>
				{recording.live && <span class="badge ok">live</span>}
			</h3>
			{recording.problem ? (
				<p class="problem">{recording.problem}</p>
			) : (
				<>
					<p class="quiet">
						{[visible(recording.host), dates && `${dates} UTC`, countWords(events, "I/O")].filter(Boolean).join(" · ")}
					</p>
					{events > 0 && (
						<Thumbnail recording={recording.name} statistic={pictureOf(recording)} live={recording.live} />
					)}
				</>
			)}
		</li>
	);
}
