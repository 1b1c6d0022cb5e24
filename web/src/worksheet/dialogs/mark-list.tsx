// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { sheet, whole } from "../../api/worksheet";
import type { Mark } from "../../generated/api";
import { visible } from "../../lib/names";
import { markLink, markSpan, marks } from "../marks";
import { Head } from "../pages/parts";
import { showSpan } from "../time-navigation";
import { lengthWords, momentWords } from "../times";
import { Dialog, opened } from "./dialogs";

/** The marks of a recording, such as the runs of a study: each leads to its time, and to its report. */
export function MarksDialog() {
	return (
		<Dialog name="marks" title="Marks">
			<List />
		</Dialog>
	);
}

function List() {
	const [typed, setTyped] = useState("");
	useEffect(() => marks.refresh(), []);
	const { found, left } = marks.value;
	const shown = found.filter((each) => wordsOf(each).includes(typed.toLowerCase()));
	return (
		<>
			<input
				data-first
				aria-label="Find a mark"
				placeholder="Find"
				value={typed}
				onInput={(event) => setTyped(event.currentTarget.value)}
			/>
			{found.length === 0 ? (
				<p class="quiet">Nothing is marked in {visible(sheet.value.recording)}. Runs of a study mark their time.</p>
			) : (
				<div class="table">
					<table>
						<Head names={["mark", "kind", "begins", "lasts", "report"]} />
						<tbody>
							{shown.map((each, i) => (
								<tr key={`${each.label} ${i}`}>
									<th scope="row">
										<button
											type="button"
											class="link"
											onClick={() => {
												showSpan(markSpan(each, whole.value.until));
												opened.value = "";
											}}
										>
											{visible(each.label)}
										</button>
									</th>
									<td>{visible(each.kind)}</td>
									<td>{momentWords(each.from_ns, 1e9, whole.value.from)}</td>
									<td>{each.until_ns === null ? "still" : lengthWords(each.until_ns - each.from_ns)}</td>
									<td>{markLink(each) && <a href={markLink(each) ?? ""}>open</a>}</td>
								</tr>
							))}
						</tbody>
					</table>
				</div>
			)}
			{left > 0 && <p class="quiet">{left} earlier marks are not listed.</p>}
		</>
	);
}

const wordsOf = (mark: Mark) => `${mark.label} ${mark.kind} ${JSON.stringify(mark.facts)}`.toLowerCase();
