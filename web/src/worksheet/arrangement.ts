// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import { compared, edit, focus, type GraphSpec, graphs, sheet, USUAL_HEIGHT } from "../api/worksheet";
import { HIGHEST, LOWEST } from "./document-reader";
import { stateOf } from "./graph/state";

/** Put a graph at another place among the graphs. */
export function place(id: string, to: number): void {
	const { graphs } = sheet.value;
	const from = graphs.findIndex((each) => each.id === id);
	const spec = graphs[from];
	const target = Math.max(0, Math.min(graphs.length - 1, to));
	if (!spec || target === from) return;
	const left = graphs.filter((each) => each.id !== id);
	sheet.value = { ...sheet.value, graphs: [...left.slice(0, target), spec, ...left.slice(target)] };
}

/** One place up (-1) or down. */
export function shift(spec: GraphSpec, by: number): void {
	place(spec.id, sheet.value.graphs.findIndex((each) => each.id === spec.id) + by);
}

/** The height that the screen has below the head of a graph. */
export const screenHeight = signal(0);

/** The height of the window. */
export const windowHeight = signal(0);

/** A graph among others has this share of the window at least. */
const SHARE = 0.22;
/** Few graphs share the screen: the height above them, and of each graph without its plot, in px. */
const [ABOVE, BESIDE] = [190, 110];
/** The share of the screen that a graph alone leaves to what is open below it. */
const OPEN = 0.45;

/** How high a graph is drawn: unless it was resized, alone it fills the screen, and on a high screen it is higher. */
export function heightOf(spec: Pick<GraphSpec, "id" | "height" | "hierarchy">): number {
	if (spec.height !== USUAL_HEIGHT) return spec.height;
	return Math.min(HIGHEST, Math.max(spec.height, Math.round(roomOf(spec))));
}

function roomOf(spec: Pick<GraphSpec, "id" | "hierarchy">): number {
	const all = graphs.value;
	const least = SHARE * windowHeight.value;
	if (compared.value !== null) return least;
	if (all.length === 1) return isOpen(spec) ? (1 - OPEN) * screenHeight.value : screenHeight.value;
	// on a screen without room for the head of a graph there is none to share
	if (screenHeight.value === 0) return least;
	const rows = Math.ceil(all.reduce((sum, { width }) => sum + width, 0) / 2);
	return Math.max(least, (windowHeight.value - ABOVE) / rows - BESIDE);
}

/** Whether a list, a map or a hierarchy was opened below a plot. A mark opens one too, but a plot keeps its height while it is dragged over. */
function isOpen({ id, hierarchy }: Pick<GraphSpec, "id" | "hierarchy">): boolean {
	const { listed, subSecond } = stateOf(id);
	return listed.value !== null || subSecond.value || hierarchy !== "";
}

/** A graph's height, within bounds. */
export function resize(spec: GraphSpec, height: number): void {
	const next = Math.round(Math.max(LOWEST, Math.min(HIGHEST, height)));
	// the usual height is that of a graph that was not resized
	edit(spec.id, { height: next === USUAL_HEIGHT ? next - 1 : next });
}

/** A graph's place on the page, null while it has none. */
export const homeOf = (id: string): HTMLElement | null =>
	document.querySelector<HTMLElement>(`[data-graph="${CSS.escape(id)}"]`);

/** The next graph (or the one before, -1) becomes the one that keys act on. */
export function step(by: number): void {
	const { graphs } = sheet.value;
	if (graphs.length === 0) return;
	const now = graphs.findIndex((each) => each.id === focus.value);
	const next = graphs[now < 0 ? 0 : (now + by + graphs.length) % graphs.length];
	if (!next) return;
	focus.value = next.id;
	homeOf(next.id)?.focus();
}
