import { signal } from "@preact/signals";
import type { Sharing } from "../../generated/api";
import { asked, tell } from "../../model/ask";
import { waitsOf, wordsOf } from "../../model/feed";
import { fileName, offer } from "../../model/files";
import { standing } from "../../model/moving";
import { refused, sheet } from "../../model/worksheet";

/** Whether a file is being made. */
export const sharing = signal(false);

const PATIENCE = 20_000;
const SETTLED = 400;

/** The worksheet as one file that needs no service: its answers lie in it. What follows is held first, so that they belong together. */
export async function shareSheet(): Promise<void> {
	sharing.value = true;
	refused.value = "";
	try {
		if ("live" in sheet.value.time) sheet.value = { ...sheet.value, time: standing() };
		await settled();
		const page = await tell<string>("POST", "share", {
			worksheet: sheet.value,
			questions: questions(),
		} satisfies Sharing);
		offer(fileName(sheet.value.name || sheet.value.recording, "html"), new Blob([page], { type: "text/html" }));
	} catch (error) {
		refused.value = error instanceof Error ? error.message : String(error);
	} finally {
		sharing.value = false;
	}
}

/** When every graph has its answer, and asks nothing more. */
async function settled(): Promise<void> {
	const begun = Date.now();
	let quiet = Date.now();
	while (Date.now() - begun < PATIENCE && Date.now() - quiet < SETTLED) {
		await new Promise((done) => setTimeout(done, 50));
		if (sheet.value.graphs.some((each) => waitsOf(each).value)) quiet = Date.now();
	}
}

/** All that was asked of the time and the graphs that are shown now. */
function questions(): string[] {
	const spans = new Set(sheet.value.graphs.map((each) => wordsOf(each).from));
	const needed = (name: string) => {
		const from = new URLSearchParams(name.slice(name.indexOf("?") + 1)).get("from");
		return from === null || spans.has(from);
	};
	return asked().filter((name) => !/^(stream|worksheets|alerts|kept)/.test(name) && needed(name));
}
