// SPDX-License-Identifier: Apache-2.0
/** What the address keeps: the section shown, the run opened, the filter of the table of runs. */
export interface Place {
	metric: string;
	run: string;
	filter: string;
	/** The opened cell of the cover, by its number. */
	cell: string;
}

const KEYS = ["metric", "run", "filter", "cell"] as const;

/** The place in a URL's hash; unknown keys are ignored. An anchor of the page (`#runs`) holds no place: null. */
export function parsePlace(hash: string): Place | null {
	const text = hash.replace(/^#/, "");
	if (text !== "" && !text.includes("=")) return null;
	const values = new URLSearchParams(text);
	const [metric = "", run = "", filter = "", cell = ""] = KEYS.map((key) => values.get(key) ?? "");
	return { metric, run, filter, cell };
}

/** The hash of a place; empty values are left out, so that the plain page has none. */
export function formatPlace(place: Place): string {
	const values = new URLSearchParams();
	for (const key of KEYS) if (place[key] !== "") values.set(key, place[key]);
	const text = values.toString();
	return text === "" ? "" : `#${text}`;
}
