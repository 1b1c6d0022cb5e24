// SPDX-License-Identifier: Apache-2.0
import { batch, type Signal, signal } from "@preact/signals";
import { hover } from "../../api/worksheet";
import type { Content } from "../../canvas/content";
import { type Held, nothingHeld } from "../../canvas/heat";
import { forgetNames } from "./colours";

/** A marked rectangle, in ns on the recording's clock and in the unit of the vertical axis. */
export interface Mark {
	from: number;
	until: number;
	low: number;
	high: number;
	/** Whether it belongs to a map and narrows its values. */
	mapped?: boolean;
}

/** A menu of steps, and its position (CSS pixels of the window). */
export interface Opened {
	x: number;
	y: number;
	/** What it is about: a value of a field, or a range of values. `of`: the statistic that has it, where that is not the graph's. */
	about: { field: string; value: string; of?: string } | { field: string; low: number; high: number };
}

/** A value in the left panel. */
export interface Item {
	key: string;
	words: string;
	value: number | null;
	colour: string;
	/** False for a value that is only a sum of other values. */
	single: boolean;
}

/** What a graph holds besides its specification: nothing of it is saved. */
export interface GraphState {
	mark: Signal<Mark | null>;
	/** The part of a map of which the single I/Os are listed. */
	listed: Signal<Mark | null>;
	/** Whether the map of offsets within the second is shown. */
	subSecond: Signal<boolean>;
	/** Rows chosen in the left panel of a map. */
	band: Signal<{ low: number; high: number } | null>;
	menu: Signal<Opened | null>;
	content: Signal<Content | null>;
	/** What is outside of a map's axis, in words. */
	outside: Signal<string>;
	/** What the visible hatching means, in words. */
	blank: Signal<string>;
	/** What was lost in the time that is seen, in words. */
	lost: Signal<string>;
	/** The part of a tree or an icicle that is shown alone, "" for all. */
	branch: Signal<string>;
	/** What the left panel lists, in its order. */
	items: Signal<readonly Item[]>;
	/** Fields by which a map can be split. */
	fields: Signal<readonly string[]>;
	held: Held;
}

const all = new Map<string, GraphState>();

/** The state of a graph, by its id. */
export function stateOf(id: string): GraphState {
	const known = all.get(id);
	if (known) return known;
	const made: GraphState = {
		mark: signal(null),
		listed: signal(null),
		subSecond: signal(false),
		band: signal(null),
		menu: signal(null),
		content: signal(null),
		outside: signal(""),
		blank: signal(""),
		lost: signal(""),
		branch: signal(""),
		items: signal([]),
		fields: signal([]),
		held: nothingHeld(),
	};
	all.set(id, made);
	return made;
}

/** The id of the state of a graph's difference, which has its own mark. */
export const differenceOf = (id: string): string => `${id} less`;

/** Drop the state of a graph that is no more. */
export function forget(id: string): void {
	all.delete(id);
	forgetNames(id);
	hover.value = null;
}

/** Reset: the graph shows another recording or statistic, without marks, choices or held values. */
export function renew(id: string): void {
	const state = stateOf(id);
	batch(() => {
		for (const each of [state.mark, state.listed, state.band, state.menu, stateOf(differenceOf(id)).mark])
			each.value = null;
		state.outside.value = "";
		state.blank.value = "";
		state.lost.value = "";
		state.branch.value = "";
		state.items.value = [];
	});
	state.held = nothingHeld();
}
