import { readGraph, readWorksheet } from "./reading";
import { type GraphSpec, graphOf, type Span, type Worksheet } from "./worksheet";

/**
 * A worksheet as the words of an address, short where graphs are as they begin:
 * `recording=rec&last=60&graph=io.ops[latency]&graph={"statistic":"io.ops[op]","width":1}`.
 */
export function formatPlace(sheet: Worksheet): string {
	const words = new URLSearchParams();
	if (sheet.name) words.set("name", sheet.name);
	words.set("recording", sheet.recording);
	if ("live" in sheet.time) words.set("last", String(sheet.time.live));
	else for (const [name, value] of moments(sheet.time)) words.set(name, value);
	if (sheet.compare)
		words.set(
			"compare",
			moments(sheet.compare)
				.map(([, value]) => value)
				.join("-"),
		);
	for (const graph of sheet.graphs) words.append("graph", formatGraph(graph));
	// brackets and quotes may stand in a fragment, and are easier to read as they are
	return words.toString().replaceAll("%5B", "[").replaceAll("%5D", "]").replaceAll("%2C", ",").replaceAll("%3A", ":");
}

/** The worksheet that an address says; what is missing or damaged is as it begins. */
export function parsePlace(text: string): Worksheet {
	const words = new URLSearchParams(text.replace(/^[#?]/, ""));
	const [from, until] = [words.get("from"), words.get("to")].map(number);
	const [before, after] = (words.get("compare") ?? "").split("-").map(number);
	return readWorksheet({
		name: words.get("name") ?? "",
		recording: words.get("recording") ?? "",
		time: from !== null && until !== null ? { from, until } : { live: number(words.get("last")) },
		compare: { from: before, until: after },
		graphs: words.getAll("graph").map(parseGraph),
	});
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

const moments = ({ from, until }: Span): [string, string][] => [
	["from", String(BigInt(Math.round(from)))],
	["to", String(BigInt(Math.round(until)))],
];

function number(text: string | null | undefined): number | null {
	return text && /^\d{1,20}(\.\d+)?$/.test(text) ? Number(text) : null;
}
