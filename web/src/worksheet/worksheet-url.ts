// SPDX-License-Identifier: Apache-2.0
import { type GraphSpec, graphOf, type Span, type Worksheet } from "../api/worksheet";
import { readGraph, readSpan, readWorksheet } from "./document-reader";

/**
 * A worksheet as the words of an address, short where graphs are as they begin:
 * `recording=rec&last=60&graph=io.ops[latency]&graph={"statistic":"io.ops[op]","width":1}`. `at`: the second that is selected.
 */
export function formatPlace(sheet: Worksheet, selected: Span | null = null): string {
	const words = new URLSearchParams();
	if (sheet.name) words.set("name", sheet.name);
	words.set("recording", sheet.recording);
	if ("live" in sheet.time) words.set("last", String(sheet.time.live));
	else for (const [name, value] of moments(sheet.time)) words.set(name, value);
	if (sheet.compare) words.set("compare", both(sheet.compare));
	if (selected) words.set("at", both(selected));
	for (const [colour, place] of Object.entries(sheet.colours)) words.append("colour", `${place}:${colour}`);
	for (const graph of sheet.graphs) words.append("graph", formatGraph(graph));
	// brackets and quotes are valid in a fragment, and are easier to read unescaped
	return words.toString().replaceAll("%5B", "[").replaceAll("%5D", "]").replaceAll("%2C", ",").replaceAll("%3A", ":");
}

/** Whether an address says which time is shown. */
export function hasTime(text: string): boolean {
	const words = new URLSearchParams(text.replace(/^[#?]/, ""));
	return words.has("last") || (words.has("from") && words.has("to"));
}

/** The worksheet that an address says; what is missing or damaged is as it begins. */
export function parsePlace(text: string): Worksheet {
	const words = new URLSearchParams(text.replace(/^[#?]/, ""));
	const [from, until] = [words.get("from"), words.get("to")].map(number);
	return readWorksheet({
		name: words.get("name") ?? "",
		recording: words.get("recording") ?? "",
		time: from !== null && until !== null ? { from, until } : { live: number(words.get("last")) },
		compare: span(words.get("compare")),
		colours: Object.fromEntries(words.getAll("colour").flatMap(parseColour)),
		graphs: words.getAll("graph").map(parseGraph),
	});
}

/** The second that an address says is selected. */
export function parseSelected(text: string): Span | null {
	return readSpan(span(new URLSearchParams(text.replace(/^[#?]/, "")).get("at")));
}

function formatGraph(graph: GraphSpec): string {
	const { id: _, statistic, ...rest } = graph;
	const first = graphOf(statistic, "") as unknown as Record<string, unknown>;
	const other = Object.entries(rest).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(first[key]));
	return other.length === 0 ? statistic : JSON.stringify({ statistic, ...Object.fromEntries(other) });
}

function parseGraph(text: string): GraphSpec | null {
	if (!text.startsWith("{")) return readGraph({ statistic: text });
	try {
		return readGraph(JSON.parse(text));
	} catch {
		return null;
	}
}

/** "5:device=sda": the place of a name among the colours. */
function parseColour(text: string): [string, number][] {
	const [, place, name] = /^(\d{1,2}):(.*)$/s.exec(text) ?? [];
	return name === undefined ? [] : [[name, Number(place)]];
}

const moments = ({ from, until }: Span): [string, string][] => [
	["from", String(BigInt(Math.round(from)))],
	["to", String(BigInt(Math.round(until)))],
];

/** A span as one word, "-5..10": a moment before the clock's 0 has a sign. */
const both = (span: Span): string =>
	moments(span)
		.map(([, value]) => value)
		.join("..");

function span(text: string | null): { from: number | null; until: number | null } {
	const [from, until, more] = (text ?? "").split("..").map(number);
	return more === undefined ? { from: from ?? null, until: until ?? null } : { from: null, until: null };
}

function number(text: string | null | undefined): number | null {
	return text && /^-?\d{1,20}(\.\d+)?$/.test(text) ? Number(text) : null;
}
