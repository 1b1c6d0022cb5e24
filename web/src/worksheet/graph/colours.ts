// SPDX-License-Identifier: Apache-2.0
import { sheet } from "../../api/worksheet";
import { HUES, hueOf, large, placeOf, placesOf } from "../../canvas/hues";
import { printing, theme } from "../../lib/theme";

/** The places of names among the hues, by field: the same in all graphs of a worksheet. */
let places = new Map<string, Map<string, number>>();
/** The names in colour of each graph, by its id. */
const shown = new Map<string, { field: string; names: readonly string[] }>();
/** What the worksheet says, as it was read or written last. */
let known: unknown;
let recording = "";

/** A worksheet that was opened, and another recording, begin with the places that the worksheet says. */
function follow(): void {
	const { colours, recording: now } = sheet.peek();
	if (colours === known && recording === now) return;
	if (recording !== now) shown.clear();
	[known, recording] = [colours, now];
	places = new Map();
	for (const [name, place] of Object.entries(colours)) {
		const cut = name.indexOf("=");
		const field = name.slice(0, cut);
		const of = places.get(field) ?? new Map<string, number>();
		if (![...of.values()].includes(place)) of.set(name.slice(cut + 1), place);
		places.set(field, of);
	}
}

let writing = false;

/** Write to the worksheet the names that do not have the place which they have by themselves; not while a graph is being made. */
function remember(): void {
	if (writing) return;
	writing = true;
	queueMicrotask(() => {
		writing = false;
		const before = sheet.peek().colours;
		// another worksheet has been opened
		if (before !== known) return;
		const found: Record<string, number> = {};
		for (const [field, of] of places)
			for (const [name, place] of of) if (placeOf(field, name) !== place) found[`${field}=${name}`] = place;
		const names = Object.keys(found);
		if (names.length === Object.keys(before).length && names.every((name) => before[name] === found[name])) return;
		known = found;
		sheet.value = { ...sheet.peek(), colours: found };
	});
}

/**
 * Assign colours to the large values of a graph, and to chosen values of any size. A name keeps its colour while the worksheet is open;
 * if there are not enough colours, that of a name that no graph shows is reused.
 */
export function colourNames(
	id: string,
	field: string,
	sized: readonly { key: string; value: number | null }[],
	chosen: readonly string[],
): void {
	follow();
	const there = new Set(sized.map((each) => each.key));
	const names = [...new Set([...chosen.filter((key) => there.has(key)), ...large(sized)])].slice(0, HUES.length);
	shown.set(id, { field, names });
	const before = places.get(field) ?? new Map<string, number>();
	const added = names.filter((name) => !before.has(name));
	if (added.length === 0) return;
	const used = new Set([...shown.values()].flatMap((each) => (each.field === field ? each.names : [])));
	const kept = new Map(before);
	for (const name of before.keys()) if (kept.size + added.length > HUES.length && !used.has(name)) kept.delete(name);
	places.set(field, placesOf(field, names, kept));
	remember();
}

/** A graph is no more, so its names need no colours. */
export const forgetNames = (id: string): void => void shown.delete(id);

/** The colour of a name; grey if it has none. */
export const colourOfName = (field: string, name: string): string =>
	hueOf(places.get(field)?.get(name) ?? -1, isDark());

/** The colour of a number that has no parts. */
export const colourOfNumber = (): string => hueOf(0, isDark());

const isDark = (): boolean => theme.value === "dark" && !printing.value;
