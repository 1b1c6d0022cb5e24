// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { StudyFacts, StudyMatrix } from "../generated/api";
import { historyAddress, reportAddress, worksheetAddress } from "../lib/addresses";
import { visible } from "../lib/names";
import { countWords, dateWords } from "../lib/words";
import { served } from "./state";

/** Studies that are shown at first, and more with each click. */
const SHOWN = 30;
const LEVELS = ["OK", "UNJUDGED", "SUSPECT", "INVALID"] as const;

/** The studies that contain all words, in name, title, variants or sentences. */
export function matching(studies: readonly StudyFacts[], text: string): StudyFacts[] {
	const words = text.toLowerCase().split(/\s+/).filter(Boolean);
	if (words.length === 0) return [...studies];
	return studies.filter((study) => {
		const sentences = study.sentences.map((sentence) => sentence.text);
		const all = [study.name, study.title, ...study.variants, ...sentences, study.problem].join(" ").toLowerCase();
		return words.every((word) => all.includes(word));
	});
}

/** Studies from the newest on, each with its headline and state. */
export function StudyList() {
	const { studies, waiting } = served.value;
	const [text, setText] = useState("");
	const [most, setMost] = useState(SHOWN);
	if (studies.length === 0) return null;
	const matches = matching(studies, text);
	return (
		<section aria-labelledby="studies">
			<div class="heading">
				<h2 id="studies">Studies</h2>
				<input
					type="search"
					aria-label="Search studies"
					placeholder="Search studies"
					value={text}
					onInput={(event) => setText(event.currentTarget.value)}
				/>
				<span class="quiet" role="status">
					{matches.length < studies.length ? `${matches.length} of ` : ""}
					{countWords(studies.length, "study", "studies")}
					{waiting > 0 && `, ${waiting} still to be read`}
				</span>
			</div>
			<ul class="studies">
				{matches.slice(0, most).map((study) => (
					<Study key={study.name} study={study} />
				))}
			</ul>
			{matches.length > most && (
				<button type="button" class="more" onClick={() => setMost(most + 100)}>
					Show more
				</button>
			)}
		</section>
	);
}

function Study({ study }: { study: StudyFacts }) {
	const isRead = study.state === "read";
	return (
		<li class="tile study">
			<div class="facts">
				<h3>{isRead ? <a href={reportAddress(study.name)}>{visible(study.name)}</a> : visible(study.name)}</h3>
				<p class="quiet">
					{[study.title !== study.name && visible(study.title), `${dateWords(study.measured_ns)} UTC`]
						.filter(Boolean)
						.join(" · ")}
				</p>
				<p class="levels">
					{LEVELS.filter((level) => study.levels[level]).map((level) => (
						<span key={level} class={`badge ${level.toLowerCase()}`}>
							{study.levels[level]} {level}
						</span>
					))}
				</p>
				<p class="quiet">{variantWords(study)}</p>
			</div>
			<div class="headline">
				{study.state === "waiting" && <p class="quiet">Not read yet.</p>}
				{study.problem && <p class="problem">{study.problem}</p>}
				{study.matrices.length > 0 && (
					<div class="stamps cover">
						{study.matrices.map((matrix, i) => (
							<Stamp key={i} matrix={matrix} />
						))}
					</div>
				)}
				{study.sentences.map((sentence) => (
					<p key={sentence.text} class={`sentence ${sentence.tone}`} title={sentence.text}>
						{sentence.text}
					</p>
				))}
				{study.missing.map((words) => (
					<p key={words} class="quiet">
						{words}
					</p>
				))}
				<p class="links">
					{isRead && <a href={reportAddress(study.name)}>Report</a>}
					{study.recordings.map((name) => (
						<a key={name} href={worksheetAddress(name)}>
							Recording {visible(name.split("/").at(-1) ?? name)}
						</a>
					))}
					{study.histories.map((name) => (
						<a key={name} href={historyAddress(name)}>
							History {visible(name)}
						</a>
					))}
				</p>
			</div>
		</li>
	);
}

/** A matrix of the report's cover in small: its colours. The sentences have the numbers. */
function Stamp({ matrix: { title, cells } }: { matrix: StudyMatrix }) {
	const columns = Math.max(1, ...cells.map((row) => row.length));
	return (
		<figure>
			<div
				class="stamp"
				role="img"
				aria-label={`${title}: colours of ${countWords(cells.length * columns, "cell")}`}
				style={{ gridTemplateColumns: `repeat(${columns}, 1.4rem)` }}
			>
				{cells.flatMap((row, i) => row.map((classes, j) => <span key={`${i} ${j}`} class={classes} />))}
			</div>
			<figcaption class="quiet" title={title}>
				{title}
			</figcaption>
		</figure>
	);
}

/** "stock (baseline), patched"; of many variants the first. */
export function variantWords({ variants, baseline }: Pick<StudyFacts, "variants" | "baseline">): string {
	const named = variants.map((name) => visible(name) + (name === baseline && variants.length > 1 ? " (baseline)" : ""));
	return named.length > 5 ? `${named.slice(0, 4).join(", ")} and ${named.length - 4} more` : named.join(", ");
}
