// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { cursor, focus, type Span, sheet, time, whole } from "../../api/worksheet";
import type { Mark } from "../../generated/api";
import { messageOf } from "../../lib/errors";
import { visible } from "../../lib/names";
import { stateOf } from "../graph/state";
import { addMark, lineOf, markLink, markSpan, marks, removeMark, wordsOf } from "../marks";
import { Head, Sure } from "../pages/parts";
import { offline } from "../session";
import { showSpan } from "../time-navigation";
import { lengthWords, momentWords, spanWords } from "../times";
import { Dialog, opened } from "./dialogs";

/** Signs of verdicts, so that colour alone says nothing. */
const SIGNS: Record<string, string> = { OK: "✓", SUSPECT: "?", INVALID: "✗", UNJUDGED: "–" };

/** The marks of a recording, such as the runs of a study: each leads to its time, and to its report. Users add their own. */
export function MarksDialog() {
	return (
		<Dialog name="marks" title="Marks">
			<List />
		</Dialog>
	);
}

/** Whether the dialog begins with the name of a new mark. */
const naming = signal(false);

/** Open the dialog to name a new mark. */
export function nameMark(): void {
	naming.value = true;
	opened.value = "marks";
}

/** What a new mark can be of. */
interface Place {
	title: string;
	span: Span;
}

/** The marked part of the graph that is chosen, the selected second, and the time shown. */
function places(): Place[] {
	const marked = focus.peek() && stateOf(focus.peek()).mark.peek();
	const second = cursor.peek();
	return [
		marked && { title: "the marked part", span: { from: marked.from, until: marked.until } },
		second && { title: "the selected second", span: second },
		{ title: "the time shown", span: time.peek() },
	].filter((each): each is Place => Boolean(each));
}

/** A new mark: its name, a note, and what it is of. */
function NewMark({ isFirst }: { isFirst: boolean }) {
	const [choices] = useState(places);
	const [place, setPlace] = useState(0);
	const [label, setLabel] = useState("");
	const [note, setNote] = useState("");
	const [problem, setProblem] = useState("");
	const span = (choices[place] ?? choices[0])?.span;
	const save = async (event: Event) => {
		event.preventDefault();
		if (!span) return;
		try {
			await addMark(span, label.trim(), note.trim());
			setLabel("");
			setNote("");
			setProblem("");
		} catch (error) {
			setProblem(messageOf(error));
		}
	};
	return (
		<form class="new-mark" onSubmit={save}>
			<input
				{...(isFirst && { "data-first": true })}
				aria-label="Name of the mark"
				placeholder="Name of a new mark"
				required
				maxLength={200}
				value={label}
				onInput={(event) => setLabel(event.currentTarget.value)}
			/>
			<input
				aria-label="Note"
				placeholder="Note"
				maxLength={4000}
				value={note}
				onInput={(event) => setNote(event.currentTarget.value)}
			/>
			<select
				aria-label="What is marked"
				value={String(place)}
				onChange={(event) => setPlace(Number(event.currentTarget.value))}
			>
				{choices.map((each, i) => (
					<option key={each.title} value={String(i)}>
						{each.title}
					</option>
				))}
			</select>
			<button type="submit">Mark</button>
			<span class="quiet">{span && spanWords(span, whole.value.from)}</span>
			{problem && (
				<p class="problem" role="alert">
					{problem}
				</p>
			)}
		</form>
	);
}

function List() {
	const [typed, setTyped] = useState("");
	const [problem, setProblem] = useState("");
	const [begins] = useState(naming.peek());
	useEffect(() => {
		naming.value = false;
		marks.refresh();
	}, []);
	const { found, left } = marks.value;
	const shown = found.filter((mark) => searched(mark).includes(typed.toLowerCase()));
	const remove = (mark: Mark) =>
		removeMark(mark).then(
			() => setProblem(""),
			(error: unknown) => setProblem(messageOf(error)),
		);
	return (
		<>
			{!offline.value && <NewMark isFirst={begins || found.length === 0} />}
			{found.length === 0 ? (
				<p class="quiet">Nothing is marked in {visible(sheet.value.recording)}. Runs of a study mark their time.</p>
			) : (
				<>
					<input
						{...(!begins && { "data-first": true })}
						aria-label="Find a mark"
						placeholder="Find"
						value={typed}
						onInput={(event) => setTyped(event.currentTarget.value)}
					/>
					<div class="table">
						<table>
							<Head names={["mark", "what", "verdict", "begins", "lasts", "note", ""]} />
							<tbody>
								{shown.map((mark, i) => (
									<Row key={`${mark.label} ${i}`} mark={mark} remove={remove} />
								))}
							</tbody>
						</table>
					</div>
				</>
			)}
			{problem && (
				<p class="problem" role="alert">
					{problem}
				</p>
			)}
			{left > 0 && <p class="quiet">{left} earlier marks are not listed.</p>}
		</>
	);
}

function Row({ mark, remove }: { mark: Mark; remove: (mark: Mark) => void }) {
	const { what, verdict, note } = wordsOf(mark);
	const link = markLink(mark);
	return (
		<tr>
			<th scope="row">
				<button
					type="button"
					class="link"
					onClick={() => {
						showSpan(markSpan(mark, whole.value.until));
						opened.value = "";
					}}
				>
					{visible(mark.label)}
				</button>
			</th>
			<td>{visible(what) || mark.kind}</td>
			<td>
				{verdict && (
					<span class={`badge ${verdict.toLowerCase()}`}>
						{SIGNS[verdict]} {verdict}
					</span>
				)}
			</td>
			<td>{momentWords(mark.from_ns, 1e9, whole.value.from)}</td>
			<td>{lastsWords(mark)}</td>
			<td class="note">{visible(note)}</td>
			<td>
				{link && <a href={link}>report</a>}
				{mark.kind === "user" && !offline.value && (
					<Sure words="Remove" sure="Really remove" act={() => remove(mark)} />
				)}
			</td>
		</tr>
	);
}

function lastsWords({ from_ns, until_ns }: Mark): string {
	if (until_ns === null) return "still";
	return until_ns > from_ns ? lengthWords(until_ns - from_ns) : "a moment";
}

const searched = (mark: Mark) => `${lineOf(mark)} ${mark.kind} ${JSON.stringify(mark.facts)}`.toLowerCase();
