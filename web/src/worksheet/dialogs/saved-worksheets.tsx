// SPDX-License-Identifier: Apache-2.0

import { useEffect, useState } from "preact/hooks";
import { ask, tell } from "../../api/client";
import { sheet } from "../../api/worksheet";
import type { SavedFacts, SavedWorksheets, Worksheet } from "../../generated/api";
import { messageOf } from "../../lib/errors";
import { NAME, NAME_WORDS } from "../../lib/names";
import { zoneWords } from "../../lib/zone";
import { readWorksheet, unselected } from "../document-reader";
import { Head, Sure } from "../pages/parts";
import { show } from "../session";
import { momentWords } from "../times";
import { Dialog, opened } from "./dialogs";

/** Worksheets that are saved: open, clone, delete; and this one, to be saved. */
export function SheetsDialog() {
	return (
		<Dialog name="sheets" title="Worksheets">
			<List />
		</Dialog>
	);
}

function List() {
	const [saved, setSaved] = useState<SavedFacts[] | null>(null);
	const [problem, setProblem] = useState("");
	const [name, setName] = useState(sheet.value.name);
	const [sure, setSure] = useState("");
	const attempt = async (act: () => Promise<unknown>) => {
		setProblem("");
		try {
			await act();
			setSaved((await ask<SavedWorksheets>("worksheets")).worksheets);
		} catch (error) {
			setProblem(messageOf(error));
		}
	};
	useEffect(() => void attempt(async () => undefined), []);
	const path = (each: string) => `worksheets/${encodeURIComponent(each)}`;
	const read = async (each: string) => readWorksheet(await ask<Worksheet>(path(each)));
	const save = (asked: string) =>
		attempt(async () => {
			// until the list is loaded it is unknown what would be replaced
			const listed = saved ?? (await ask<SavedWorksheets>("worksheets")).worksheets;
			if (listed.some((each) => each.name === asked) && asked !== sheet.value.name && sure !== name) {
				setSure(name);
				return;
			}
			await tell("PUT", path(asked), { ...unselected(sheet.value), name: asked });
			sheet.value = { ...sheet.value, name: asked };
			setSure("");
		});
	const open = (each: string) =>
		attempt(async () => {
			await show(await read(each));
			opened.value = "";
		});
	const clone = (each: string) =>
		attempt(async () => {
			const copy = unused(each, saved ?? []);
			await tell("PUT", path(copy), { ...(await read(each)), name: copy });
		});
	const known = saved?.some((each) => each.name === name.trim()) && name.trim() !== sheet.value.name;
	return (
		<>
			<form
				class="save"
				onSubmit={(event) => {
					event.preventDefault();
					void save(name.trim());
				}}
			>
				<label for="sheet-name">Save this worksheet as</label>
				<input
					id="sheet-name"
					data-first
					required
					pattern={NAME}
					title={NAME_WORDS}
					value={name}
					maxLength={64}
					onInput={(event) => setName(event.currentTarget.value)}
				/>
				<button type="submit">{known && sure === name ? "Yes, replace it" : "Save"}</button>
			</form>
			{known && sure === name && <p class="problem">There is another worksheet of that name.</p>}
			{problem && <p class="problem">{problem}</p>}
			{saved?.length === 0 && <p class="quiet">No worksheet is saved.</p>}
			{saved && saved.length > 0 && (
				<div class="table">
					<table>
						<Head names={["worksheet", "recording", "graphs", `saved (${zoneWords()})`]} acts />
						<tbody>
							{saved.map((each) => (
								<tr key={each.name} data-sheet={each.name}>
									<th scope="row">
										<button
											type="button"
											class="link open"
											disabled={each.problem !== ""}
											onClick={() => open(each.name)}
										>
											{each.name}
										</button>
									</th>
									<td>{each.problem || each.recording}</td>
									<td>{each.graphs}</td>
									<td>{momentWords(each.changed_ns)}</td>
									<td>
										<button
											type="button"
											class="small clone"
											disabled={each.problem !== ""}
											onClick={() => clone(each.name)}
										>
											Clone
										</button>{" "}
										<Sure
											words="Delete"
											sure="Yes, delete it"
											looks="small delete"
											act={() => void attempt(() => tell("DELETE", path(each.name)))}
										/>
									</td>
								</tr>
							))}
						</tbody>
					</table>
				</div>
			)}
			<p class="quiet">The address of this page contains the same worksheet. It can be saved and sent.</p>
		</>
	);
}

/** A name for a copy. */
function unused(name: string, saved: readonly SavedFacts[]): string {
	const taken = new Set(saved.map((each) => each.name));
	for (let number = 2; ; number++) {
		const copy = `${name.slice(0, 58)} ${number}`;
		if (!taken.has(copy)) return copy;
	}
}
