// SPDX-License-Identifier: Apache-2.0

import { useMemo } from "preact/hooks";
import { wordsOf } from "../../api/feed";
import { askedOf, hasPercentiles, painterOf } from "../../api/painters";
import type { Drawable } from "../../api/question";
import { follows, type GraphSpec } from "../../api/worksheet";
import type { Content, Words } from "../../canvas/content";
import { Heat, type Look, type Part } from "../../canvas/heat";
import { HUES } from "../../canvas/hues";
import type { Numbered } from "../../canvas/lines";
import { Numbers } from "../../canvas/numbers";
import { percent } from "../../canvas/ticks";
import type { DrawnMap, Layers } from "../../generated/api";
import type { SparseCounts } from "../../generated/maps";
import { breakdownOf } from "../../lib/names";
import { colours } from "../../lib/theme";
import { colourNames, colourOfName, colourOfNumber } from "./colours";
import { type Item, stateOf } from "./state";
import { useAsked, useRested } from "./use-answer";
import { counted, percentileWords, rate, rowWords } from "./values";

/** Maximum number of keys that a map distinguishes. */
const MOST_LAYERS = HUES.length;

/** The keys whose maps are needed to paint a map in the requested mode. */
export function layerKeys(spec: GraphSpec, items: readonly Item[]): string[] {
	if (!spec.by) return [];
	const named = items.filter((item) => item.single).map((item) => item.key);
	if (spec.mode === "rainbow") return [...new Set([...spec.highlights, ...named])].slice(0, MOST_LAYERS);
	return spec.highlights.slice(0, MOST_LAYERS);
}

/** Whether a graph is requested as a map of its statistic; the next mode may be another one. */
export const isLayered = (spec: GraphSpec, answer: Drawable | null): boolean =>
	answer?.kind === "map" && askedOf(spec) === spec.statistic && !hasPercentiles(spec);

/** The maps of the highlighted keys, requested with the columns of the graph. */
export function useLayers(
	spec: GraphSpec,
	answer: Drawable | null,
): {
	layers: Layers | null;
	problem: string;
	waits: boolean;
} {
	const { items } = stateOf(spec.id);
	const keys = isLayered(spec, answer) ? layerKeys(spec, items.value) : [];
	const base = useRested(() => wordsOf(spec), 120, [spec]);
	const { top: _, drawn: __, ...words } = base;
	const asked = useAsked<Layers>(
		"layers",
		keys.length > 0 ? { ...words, by: spec.by, key: keys, rest: "true" } : null,
		follows.peek() ? 1000 : 60,
	);
	const { found, problem } = asked;
	const layers = keys.length > 0 && suits(found, spec) ? found : null;
	// the first keys of a rainbow change their order all the time
	const lacks = !layers || (spec.mode !== "rainbow" && keys.some((key) => !layers.keys.includes(key)));
	return { layers, problem, waits: keys.length > 0 && lacks && !problem };
}

/** Whether maps distinguish the values of a graph; values that are requested later may still be among the rest. */
export const suits = (found: Layers | null, { by }: Pick<GraphSpec, "by">): boolean =>
	found !== null && found.by === by;

/** The requested keys that the maps show separately. */
export const distinguishedKeys = (spec: GraphSpec, layers: Layers | null): string[] =>
	layers ? layerKeys(spec, stateOf(spec.id).items.peek()).filter((key) => layers.keys.includes(key)) : [];

/** Why some chosen values share a colour; "" if none do. `listed`: the number of values. */
export function left(spec: Pick<GraphSpec, "by" | "highlights" | "mode">, listed: number): string {
	const { length } = spec.highlights;
	if (!spec.by) return "";
	if (spec.mode === "rainbow")
		return listed > MOST_LAYERS ? `${MOST_LAYERS} of ${listed} values are in colour, the others are grey` : "";
	return length > MOST_LAYERS ? `${MOST_LAYERS} of ${length} chosen values are shown separately` : "";
}

/** The number of values of a list, including those that are summed up. */
export const listedIn = (items: readonly Item[]): number =>
	items.reduce((sum, item) => sum + (item.single ? 1 : Number.parseInt(item.key, 10) || 0), 0);

/** What a graph paints; null before the first answer, and where no I/O has such a value. */
export function useContent(spec: GraphSpec, answer: Drawable | null, layers: Layers | null): Content | null {
	const { hatch } = colours.value;
	return useMemo(() => contentOf(spec, answer, layers, hatch), [...read(spec), answer, layers, hatch]);
}

/** The fields of a specification that determine a content: another span of the graph moves the content without painting it again. */
export function read(spec: GraphSpec): unknown[] {
	const { id, statistic, painter, by, highlights, mode, colour, scale, crop, rows, overlays } = spec;
	return [id, statistic, painter, by, highlights, mode, colour, scale, crop, rows, overlays];
}

export function contentOf(
	spec: GraphSpec,
	answer: Drawable | null,
	layers: Layers | null,
	faint: string,
): Content | null {
	if (!answer) return null;
	return answer.kind === "map" ? heat(spec, answer, layers) : numbers(spec, answer, faint);
}

function numbers(spec: GraphSpec, answer: Numbered, faint: string): Numbers {
	const lines = answer.kind === "percentiles";
	const field = lines ? "percentiles" : breakdownOf(spec.statistic);
	const sized = answer.kind === "series" ? [] : answer.keys.map(({ key, mean }) => ({ key, value: mean }));
	colourNames(spec.id, field, sized, lines ? sized.map((each) => each.key) : spec.highlights);
	return new Numbers({
		answer,
		stacked: answer.kind === "stack" && painterOf(spec, answer.kind, answer.adds_up) === "stack",
		scale: lines ? spec.scale || "log" : "linear",
		highlights: spec.highlights,
		mode: spec.mode,
		colour: (key) => (key === "" ? colourOfNumber() : colourOfName(field, key)),
		words: (value) => (lines ? (value !== null ? percentileWords(value, answer) : "no I/O") : rate(value, answer.unit)),
		faint,
	});
}

function heat(spec: GraphSpec, answer: DrawnMap, layers: Layers | null): Heat | null {
	const drawn = layers?.map ?? answer;
	const group = drawn.group;
	const map = group?.maps[0];
	if (!group || !map) return null;
	const parts = layers ? (map.dimensions[0]?.parts ?? []) : [];
	const items = stateOf(spec.id).items.peek();
	const wanted = new Set(layerKeys(spec, items));
	const keys = layers?.keys ?? [];
	const listed = items.filter((each) => each.single);
	// maps may be there before the list, as in a shared file: what they are of has its colour at once
	const mapped = keys.filter((key) => !listed.some((each) => each.key === key)).map((key) => ({ key, value: null }));
	colourNames(spec.id, spec.by, [...listed, ...mapped], [...wanted]);
	const keyParts = parts.map(({ cells }, i): Part => {
		const key = keys[i] ?? "";
		return { key, colour: colourOfName(spec.by, key), cells };
	});
	const { shown, hued } = chosen(spec.mode, map.cells, keyParts, (part) => wanted.has(part.key));
	const look: Look = {
		blank: drawn.gaps,
		window: drawn.window,
		about: drawn.statistic,
		group,
		map,
		origin: drawn.t0_ns,
		shown,
		parts: hued,
		kind: spec.colour,
		scale: spec.scale,
		crop: spec.crop,
		rows: spec.rows,
		// percentiles are those of all values, so they are not stacked
		overlays: spec.overlays && group.lines.length > 0 && shown[0] === map.cells,
		row: (low, high): Words => ({ [group.y]: rowWords(low, high, group.unit, group.y) }),
		words: (count, inColumn, inAll): Words => ({
			[group.weight]: counted(count, group),
			share: `${percent(count / Math.max(1, inColumn))} of the column, ${percent(count / Math.max(1, inAll))} of all shown`,
		}),
	};
	return new Heat(look, stateOf(spec.id).held);
}

/** What a mode paints: which counts, and which keys in their hues. `keyParts`: maps that add up to all. */
export function chosen(
	mode: GraphSpec["mode"],
	all: SparseCounts,
	keyParts: readonly Part[],
	wanted: (part: Part) => boolean,
): { shown: SparseCounts[]; hued: readonly Part[] } {
	const [named, others] = [keyParts.filter(wanted), keyParts.filter((part) => !wanted(part))];
	if (named.length === 0) return { shown: [all], hued: [] };
	if (mode === "isolate") return { shown: named.map((part) => part.cells), hued: named.length > 1 ? named : [] };
	if (mode === "exclude") return { shown: others.map((part) => part.cells), hued: [] };
	return { shown: [all], hued: named };
}
