// SPDX-License-Identifier: Apache-2.0
import { computed, type Signal, signal } from "@preact/signals";
import { type Cells, fill, geometry, minus, shades } from "../canvas/cells";
import { type Kind, type Scale, scaleOf } from "../canvas/scale";
import type { Area, Axis, Span } from "../canvas/spaces";
import type { HeatMapPage } from "../generated/heatmap";
import type { HeatMapGroup } from "../generated/maps";

/** The page's maps. */
export const page = signal<Pick<HeatMapPage, "generator" | "title" | "conditions" | "notes" | "groups">>({
	generator: "",
	title: "",
	conditions: [],
	notes: [],
	groups: [],
});

/** The part of time that all maps show. */
export const span = signal<Span>({ from: 0, to: 1 });

/** Whether the maps are a part of another page, which scrolls: the wheel zooms a map only once it has the focus. */
export const embeds = signal(false);

/** How counts become colours, on every map. */
export const kind = signal<Kind>("rank");

/** The whole of time: the longest map. */
export const wholeSpan = computed<Span>(() => ({
	from: 0,
	to: Math.max(...page.value.groups.map((group) => group.columns * group.interval_ns)),
}));

/** What a reader has chosen for a group: the part of y, and the rectangle brushed on one of its maps. */
export interface Choice {
	axis: Axis;
	crop: number;
	lines: boolean;
	brush: { map: number; area: Area } | null;
}

export type ChoiceSignal = Signal<Choice>;

/** A group as the command line asked for it. */
export function firstChoice(group: HeatMapGroup): Choice {
	return {
		axis: { low: group.low, high: group.high, scale: group.y_scale },
		crop: group.crops.find(([, high]) => high === group.high)?.[0] ?? -1,
		lines: group.show_lines,
		brush: null,
	};
}

/** The cells of every map of a group, the difference of two last, and the scales of colour: one for the maps, one for the difference. */
export interface Drawn {
	cells: Cells[];
	scale: Scale;
	difference: Scale | null;
}

/** Cells of a group for a plot of that size. A scale handed over stays as it is (while the map moves). */
export function drawn(
	group: HeatMapGroup,
	shown: Span,
	axis: Axis,
	size: { width: number; height: number },
	colour: Kind,
	frozen: Drawn | null,
): Drawn {
	const shape = geometry(group, shown, axis, size, { wide: 2, high: 3 });
	const cells = group.maps.map((map) => fill(map.cells, shape));
	const scale = frozen?.scale ?? scaleOf(cells.map(shades), colour);
	const [first, second] = cells;
	if (!group.difference || !first || !second) return { cells, scale, difference: null };
	const change = minus(second, first);
	return { cells: [...cells, change], scale, difference: frozen?.difference ?? scaleOf([shades(change)], colour) };
}
