// SPDX-License-Identifier: Apache-2.0
export const historyAddress = (name: string): string => `#history=${encodeURIComponent(name)}`;
export const reportAddress = (study: string, run = ""): string =>
	`/report/${study.split("/").map(encodeURIComponent).join("/")}${run && `#run=${encodeURIComponent(run)}`}`;

/** The worksheet of a recording, at a time and with a graph where these are known. */
export function worksheetAddress(recording: string, from?: number | null, until?: number | null, graph = ""): string {
	const words = new URLSearchParams({ recording });
	if (from != null && until != null) {
		words.set("from", String(BigInt(Math.round(from))));
		words.set("to", String(BigInt(Math.round(until))));
	}
	if (graph) words.set("graph", graph);
	return `/worksheet#${words}`;
}
