// SPDX-License-Identifier: Apache-2.0
import type { Area } from "../canvas/spaces";

/** The marked part of a map: ns since its begin, and values in its unit. */
export interface Selection {
	from: number;
	until: number;
	low: number;
	high: number;
}

/** What the kernel is sent about a marked part: whole numbers, as the edges of cells are. */
export function selectionOf(area: Area | null): Selection | null {
	if (!area) return null;
	const [from, until, low, high] = [area.from, area.to, area.low, area.high].map(Math.round) as [
		number,
		number,
		number,
		number,
	];
	return { from, until, low, high };
}

/** Whether two parts are the same, or none is marked. */
export function sameSelection(one: Selection | null, other: Selection | null): boolean {
	if (!one || !other) return one === other;
	return one.from === other.from && one.until === other.until && one.low === other.low && one.high === other.high;
}

/** Styles of a whole page as those of a shadow tree: its root and body are the host. */
export const scopeStyles = (styles: string): string =>
	styles
		.replace(/:root(\[[^\]]*\])/g, ":host($1)")
		.replace(/:root\b/g, ":host")
		.replace(/(^|[},])\s*(?:html|body)\s*\{/g, "$1:host{");
