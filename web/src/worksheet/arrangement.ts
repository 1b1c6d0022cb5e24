// SPDX-License-Identifier: Apache-2.0
import { edit, focus, type GraphSpec, sheet } from "../api/worksheet";
import { HIGHEST, LOWEST } from "./document-reader";

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

/** A graph's height, within bounds. */
export function resize(spec: GraphSpec, height: number): void {
	edit(spec.id, { height: Math.round(Math.max(LOWEST, Math.min(HIGHEST, height))) });
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
