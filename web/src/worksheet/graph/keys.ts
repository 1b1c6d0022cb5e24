// SPDX-License-Identifier: Apache-2.0
import { answerOf } from "../../api/feed";
import { painterOf, paintersOf } from "../../api/painters";
import { cursor, edit, type GraphSpec, spanOf } from "../../api/worksheet";
import { Heat } from "../../canvas/heat";
import { offline } from "../session";
import { zoomTo } from "./actions";
import { isOfEvents } from "./drill";
import { pathField } from "./hierarchy";
import { differenceOf, stateOf } from "./state";
import { CROPS, HIERARCHIES, KINDS, paintAs } from "./toolbar";

/** A key of a graph, in words, and what it does. */
export interface GraphKey {
	key: string;
	words: string;
	act: (spec: GraphSpec) => void;
}

function next<Value>(values: readonly Value[], now: Value): Value {
	return values[(values.indexOf(now) + 1) % values.length] ?? now;
}

const isMap = (spec: GraphSpec) => answerOf(spec).peek()?.kind === "map";
const place = (spec: GraphSpec, what: string) =>
	document.querySelector<HTMLElement>(`[data-graph="${CSS.escape(spec.id)}"] ${what}`);

/** The value after (or before) the highlighted value, of those that the left panel lists. */
function walk(spec: GraphSpec, by: number): void {
	const keys = stateOf(spec.id)
		.items.peek()
		.filter((item) => item.single)
		.map((item) => item.key);
	const now = keys.indexOf(spec.highlights[0] ?? "");
	const key = keys[now < 0 ? (by > 0 ? 0 : keys.length - 1) : (now + by + keys.length) % keys.length];
	if (key !== undefined) edit(spec.id, { highlights: [key] });
}

/** Select the second before or after, or the middle one where none is selected. */
function second(spec: GraphSpec, by: number): void {
	const span = spanOf(spec);
	const length = stateOf(spec.id).content.peek()?.interval ?? 1e9;
	const now = cursor.value;
	const from = now
		? now.from + by * (now.until - now.from)
		: Math.floor((span.from + span.until) / 2 / length) * length;
	cursor.value = { from, until: from + (now ? now.until - now.from : length) };
	edit(spec.id, { panel: "second" });
}

/** The next breakdowns of the marked or highlighted values. */
function drill(spec: GraphSpec): void {
	const state = stateOf(spec.id);
	const home = place(spec, "canvas")?.getBoundingClientRect();
	const at = { x: (home?.left ?? 0) + 100, y: (home?.top ?? 0) + 20 };
	const content = state.content.peek();
	const mark = state.mark.peek() ?? state.band.peek();
	if (content instanceof Heat && mark && (!spec.by || state.mark.peek())) {
		state.menu.value = { ...at, about: { field: content.look.group.y, low: mark.low, high: mark.high } };
		return;
	}
	const option = place(spec, "[role=option][aria-selected=true]") ?? place(spec, "[role=option]:not(:disabled)");
	option?.dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true }));
}

const mode = (wanted: GraphSpec["mode"]) => (spec: GraphSpec) =>
	edit(spec.id, { mode: spec.mode === wanted ? "highlight" : wanted });
const ofMap = (act: (spec: GraphSpec) => void) => (spec: GraphSpec) => {
	if (isMap(spec)) act(spec);
};

/** Keys that act on one graph. */
export const graphKeys: readonly GraphKey[] = [
	{
		key: "f",
		words:
			"to the plot: arrows move a crosshair, with Shift they mark a part, with Ctrl they move the mark, with Ctrl+Shift its right or upper edge. Enter selects a second and lists the I/Os of a cell",
		act: (spec) => place(spec, "canvas")?.focus(),
	},
	{
		key: "v",
		words: "averages or the selected second",
		act: (spec) => edit(spec.id, { panel: spec.panel === "second" ? "average" : "second" }),
	},
	{ key: "ArrowLeft", words: "select the second before", act: (spec) => second(spec, -1) },
	{ key: "ArrowRight", words: "select the second after", act: (spec) => second(spec, 1) },
	{ key: "ArrowDown", words: "highlight the next value", act: (spec) => walk(spec, 1) },
	{ key: "ArrowUp", words: "highlight the value before", act: (spec) => walk(spec, -1) },
	{
		key: "l",
		words: "to the list of values: Enter chooses one, with Shift one more",
		act: (spec) => place(spec, ".values [tabindex='0']")?.focus(),
	},
	{ key: "a", words: "break down the chosen value", act: drill },
	{ key: "h", words: "highlight chosen values", act: (spec) => edit(spec.id, { mode: "highlight" }) },
	{ key: "i", words: "show them alone, or all again", act: mode("isolate") },
	{ key: "u", words: "leave them out, or show them again", act: mode("exclude") },
	{ key: "r", words: "show all values in colour, on or off", act: rainbow },
	{
		key: "b",
		words: "of a map: list the values of the next field",
		act: ofMap((spec) => edit(spec.id, { by: next(["", ...stateOf(spec.id).fields.peek()], spec.by), highlights: [] })),
	},
	{
		key: "t",
		words: "files or devices as a tree, an icicle, or not",
		act: (spec) => pathField(spec) && edit(spec.id, { hierarchy: next(HIERARCHIES, spec.hierarchy) }),
	},
	{
		key: "c",
		words: "of a map: the next crop",
		act: ofMap((spec) => edit(spec.id, { crop: next(CROPS, spec.crop), rows: null })),
	},
	{
		key: "o",
		words: "of a map: percentiles and mean, or not",
		act: ofMap((spec) => edit(spec.id, { overlays: !spec.overlays })),
	},
	{
		key: "q",
		words: "of a map: colour by rank, log, linear",
		act: ofMap((spec) => edit(spec.id, { colour: next(KINDS, spec.colour) })),
	},
	{ key: "y", words: "logarithmic or linear axis; areas or lines", act: axis },
	{ key: "L", words: "select another form: areas, lines; a map as percentiles, as one line", act: repaint },
	{
		key: "I",
		words: "of a map: list the single I/Os of the marked part, or no longer",
		act: ofMap((spec) => {
			const { listed, mark } = stateOf(spec.id);
			listed.value = listed.peek() ? null : mark.peek();
		}),
	},
	{ key: "E", words: "map of offsets in the second, on or off", act: toggleSubSecond },
	{ key: "z", words: "zoom to the marked part, or to the chosen values", act: zoom },
	{ key: "Z", words: "show all values again", act: (spec) => edit(spec.id, { rows: null }) },
	{ key: "Escape", words: "remove the mark, the choice and the selection", act: clear },
];

function rainbow(spec: GraphSpec): void {
	const [first] = stateOf(spec.id).fields.peek();
	// a map has no values to colour before a field distinguishes them
	if (isMap(spec) && !spec.by && first) edit(spec.id, { by: first, mode: "rainbow", highlights: [] });
	else mode("rainbow")(spec);
}

function axis(spec: GraphSpec): void {
	const content = stateOf(spec.id).content.peek();
	const kind = answerOf(spec).peek()?.kind;
	if (content instanceof Heat || kind === "percentiles")
		edit(spec.id, { scale: content?.axis.scale === "log" ? "linear" : "log", rows: null });
	else if (kind === "stack") repaint(spec);
}

/** The next way to paint it. */
function repaint(spec: GraphSpec): void {
	const answer = answerOf(spec).peek();
	if (!answer) return;
	const adds_up = answer.kind === "stack" && answer.adds_up;
	const painters = paintersOf(spec.statistic, answer.kind, adds_up);
	if (painters.length > 0) paintAs(spec, next(painters, painterOf(spec, answer.kind, adds_up)));
}

/** Show or close the map of offsets within the second; a file that was shared can't ask for one. */
export function toggleSubSecond(spec: GraphSpec): void {
	const { subSecond } = stateOf(spec.id);
	subSecond.value = !subSecond.peek() && !offline.peek() && isOfEvents(spec);
}

function zoom(spec: GraphSpec): void {
	const state = stateOf(spec.id);
	const other = stateOf(differenceOf(spec.id)).mark;
	const [mark, band] = [state.mark.peek() ?? other.peek(), state.band.peek()];
	other.value = null;
	if (mark) zoomTo(spec, mark, true);
	else if (band) edit(spec.id, { rows: band });
	state.band.value = null;
}

function clear(spec: GraphSpec): void {
	const state = stateOf(spec.id);
	const other = stateOf(differenceOf(spec.id)).mark;
	if (state.listed.peek()) state.listed.value = null;
	else if (state.mark.peek() || state.band.peek() || other.peek()) {
		state.mark.value = null;
		other.value = null;
		state.band.value = null;
	} else if (spec.highlights.length > 0) edit(spec.id, { highlights: [] });
	else cursor.value = null;
}
