// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import { asked, tell, waiting } from "../../api/client";
import { waitsOf, wordsOf } from "../../api/feed";
import { heldName } from "../../api/offline";
import { askedOf } from "../../api/painters";
import { question } from "../../api/question";
import { cursor, refused, sheet } from "../../api/worksheet";
import type { Sharing } from "../../generated/api";
import { messageOf } from "../../lib/errors";
import { fileName, offer } from "../../lib/files";
import { brokenDown } from "../../lib/names";
import { unselected } from "../document-reader";
import { standing } from "../time-navigation";
import { overviewQuestions } from "./strip-chart";

/** Whether a file is being made. */
export const sharing = signal(false);

const PATIENCE = 20_000;
const SETTLED = 400;
/** Questions of a file at most, as the service takes them. */
const MOST = 256;

/** The worksheet as one file that needs no service: its answers lie in it. What follows is held first, so that they belong together. */
export async function shareSheet(): Promise<void> {
	sharing.value = true;
	refused.value = "";
	// the file has averages: they are requested while no second is selected
	const selected = cursor.value;
	cursor.value = null;
	try {
		if ("live" in sheet.value.time) sheet.value = { ...sheet.value, time: standing() };
		await settled();
		const page = await tell<string>("POST", "share", {
			worksheet: unselected(sheet.value),
			questions: held(asked()),
		} satisfies Sharing);
		offer(fileName(sheet.value.name || sheet.value.recording, "html"), new Blob([page], { type: "text/html" }));
	} catch (error) {
		refused.value = messageOf(error);
	} finally {
		cursor.value = selected;
		sharing.value = false;
	}
}

/** When all contents of the file have answers and no request is pending. */
async function settled(): Promise<void> {
	const begun = Date.now();
	let quiet = Date.now();
	while (Date.now() - begun < PATIENCE && Date.now() - quiet < SETTLED) {
		await new Promise((done) => setTimeout(done, 50));
		const waits = sheet.value.graphs.some((each) => waitsOf(each).value) || questions(waiting()).length > 0;
		if (waits) quiet = Date.now();
	}
}

/** What a file asks for of these questions, by the names under which it holds the answers: what is shown is last, which is never cut. */
export function held(names: readonly string[]): string[] {
	const { recording, graphs } = sheet.value;
	const shown = [
		...["marks", "losses"].map((path) => question(path, { recording })),
		...graphs.map((each) => question("query", wordsOf(each))),
	].map(heldName);
	const others = questions(names).map(heldName);
	return [...new Set([...shown, ...others.toReversed()])].slice(0, MOST).toReversed();
}

/** Of these questions those of the recording, the time and the graphs that are shown now. */
export function questions(names: readonly string[]): string[] {
	const { recording, graphs, compare } = sheet.value;
	const shown = graphs.map((each) => ({ statistic: askedOf(each), words: wordsOf(each) }));
	return names.filter((name) => {
		const [path = "", query = ""] = name.split("?");
		const words = new URLSearchParams(query);
		if (OTHER.test(path) || words.get("recording") !== recording) return false;
		const statistic = words.get("statistic");
		if (statistic === null || overviewQuestions.includes(name)) return true;
		if (path === "difference" && !compare) return false;
		// the values next to a map and its tree are of other breakdowns than that of the map
		const same = (one: string) =>
			words.get("drawn") || path === "layers" ? one === statistic : brokenDown(one, "") === brokenDown(statistic, "");
		const from = words.get("from");
		return shown.some((each) => same(each.statistic) && (from === null || from === each.words.from));
	});
}

/** What a file has of its own, or has no use for. */
const OTHER = /^(recordings|statistics|stream|worksheets|alerts|kept|report)(\/|$)/;
