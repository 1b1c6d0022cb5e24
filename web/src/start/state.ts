// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import { ask } from "../api/client";
import type { Start } from "../generated/api";
import { messageOf } from "../lib/errors";

/** Everything that is served. */
export const served = signal<Start>({
	schema: 1,
	studies: [],
	waiting: 0,
	histories: [],
	recordings: [],
	problems: [],
});
/** Why the last request failed; "" if it did not. */
export const problem = signal("");
/** The history that is shown; "" for the list of everything. */
export const shownHistory = signal("");

/** Interval of requests, in ms: while studies are read, and at rest. */
const READING = 1500;
const RESTING = 30_000;

/** Ask what is served, and keep asking while the page is seen. Throws where the first answer fails. */
export async function loadStart(): Promise<void> {
	served.value = await ask<Start>("start");
	const again = async () => {
		if (!document.hidden) {
			try {
				served.value = await ask<Start>("start");
				problem.value = "";
			} catch (error) {
				problem.value = messageOf(error);
			}
		}
		setTimeout(again, served.value.waiting > 0 ? READING : RESTING);
	};
	setTimeout(again, served.value.waiting > 0 ? READING : RESTING);
}

/** Show what the address says, now and when it changes. */
export function followAddress(): void {
	const read = () => {
		shownHistory.value = new URLSearchParams(location.hash.slice(1)).get("history") ?? "";
	};
	read();
	addEventListener("hashchange", read);
}
