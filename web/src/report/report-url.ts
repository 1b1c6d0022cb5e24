// SPDX-License-Identifier: Apache-2.0
/** What the address keeps: the section shown, the run opened, the filter of the table of runs. */
export interface Place {
	metric: string;
	run: string;
	filter: string;
}

const KEYS = ["metric", "run", "filter"] as const;

/** The place in a URL's hash; unknown keys are ignored. An anchor of the page (`#runs`) holds no place: null. */
export function parsePlace(hash: string): Place | null {
	const text = hash.replace(/^#/, "");
	if (text !== "" && !text.includes("=")) return null;
	const values = new URLSearchParams(text);
	return { metric: values.get("metric") ?? "", run: values.get("run") ?? "", filter: values.get("filter") ?? "" };
}

/** The hash of a place; empty values are left out, so that the plain page has none. */
export function formatPlace(place: Place): string {
	const values = new URLSearchParams();
	for (const key of KEYS) if (place[key] !== "") values.set(key, place[key]);
	const text = values.toString();
	return text === "" ? "" : `#${text}`;
}
