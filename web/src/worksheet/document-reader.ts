// SPDX-License-Identifier: Apache-2.0
import { type GraphSpec, graphOf, type Span, type Worksheet } from "../api/worksheet";
import { HUES } from "../canvas/hues";

type Data = Record<string, unknown>;

const CHOICES: { [Key in keyof GraphSpec]?: readonly unknown[] } = {
	painter: ["", "line", "stack", "heat", "percentiles"],
	mode: ["highlight", "isolate", "exclude", "rainbow"],
	colour: ["rank", "log", "linear"],
	scale: ["", "log", "linear"],
	crop: [0, 0.0001, 0.001, 0.01, 0.05],
	panel: ["average", "second"],
	hierarchy: ["", "tree", "icicle"],
	width: [1, 2],
	overlays: [true, false],
	synced: [true, false],
};
export const LOWEST = 80;
export const HIGHEST = 1600;
const LONGEST = 4096;
/** Names with a colour at most, of all fields together. */
const MOST_COLOURS = 120;

/** A worksheet from an address, a file or an older page: what is damaged or unknown in it is left out. */
export function readWorksheet(given: unknown): Worksheet {
	const data = isData(given) ? given : {};
	const graphs = Array.isArray(data.graphs) ? data.graphs.map(readGraph).filter((each) => each !== null) : [];
	const unique = graphs.map((each, i) => ({ ...each, id: each.id || `g${i + 1}` }));
	return {
		schema: 1,
		name: text(data.name, 64),
		recording: text(data.recording),
		time: readTime(data.time),
		compare: readSpan(data.compare),
		colours: readColours(data.colours),
		graphs: unique.every((each, i) => unique.findIndex((other) => other.id === each.id) === i)
			? unique
			: unique.map((each, i) => ({ ...each, id: `g${i + 1}` })),
	};
}

/** A worksheet as it is saved: which second is selected is not in it, so its values are averages. */
export function unselected(sheet: Worksheet): Worksheet {
	return { ...sheet, graphs: sheet.graphs.map((each) => ({ ...each, panel: "average" })) };
}

/** A graph; null if it names no statistic. */
export function readGraph(given: unknown): GraphSpec | null {
	const data = isData(given) ? given : {};
	const statistic = text(data.statistic);
	if (!statistic) return null;
	const found = graphOf(statistic, text(data.id, 32));
	for (const [key, allowed] of Object.entries(CHOICES))
		if (allowed?.includes(data[key])) Object.assign(found, { [key]: data[key] });
	const { low, high } = isData(data.rows) ? data.rows : {};
	return {
		...found,
		source: text(data.source, 64),
		by: text(data.by, 64),
		highlights: Array.isArray(data.highlights) ? data.highlights.map((each) => text(each)).filter(Boolean) : [],
		rows: finite(low) && finite(high) && low < high ? { low, high } : null,
		height: finite(data.height) ? Math.round(Math.min(HIGHEST, Math.max(LOWEST, data.height))) : found.height,
		span: readSpan(data.span),
	};
}

/** A span of time; null if it is not valid. */
export function readSpan(given: unknown): Span | null {
	const { from, until } = isData(given) ? given : {};
	return finite(from) && finite(until) && from < until ? { from, until } : null;
}

/** Names with their places among the colours: "device=sda" to 5. */
function readColours(given: unknown): Record<string, number> {
	const entries = isData(given) ? Object.entries(given) : [];
	const known = entries.filter(
		([name, place]) => /^[a-z_]{1,64}=/.test(name) && name.length <= LONGEST && HUES[place as number] !== undefined,
	);
	return Object.fromEntries(known.slice(0, MOST_COLOURS)) as Record<string, number>;
}

function readTime(given: unknown): Worksheet["time"] {
	const { live } = isData(given) ? given : {};
	return readSpan(given) ?? { live: finite(live) && live >= 1 ? Math.min(live, 1e9) : 60 };
}

const isData = (given: unknown): given is Data => typeof given === "object" && given !== null && !Array.isArray(given);
const finite = (given: unknown): given is number => typeof given === "number" && Number.isFinite(given);
const text = (given: unknown, most = LONGEST) => (typeof given === "string" ? given.slice(0, most) : "");
