// SPDX-License-Identifier: Apache-2.0
import { close, edit, type GraphSpec } from "../../api/worksheet";
import { toggleTheme } from "../../lib/theme";
import { toggleZone } from "../../lib/zone";
import { homeOf, shift, step } from "../arrangement";
import { opened } from "../dialogs/dialogs";
import { nameMark } from "../dialogs/mark-list";
import { graphKeys } from "../graph/graph";
import { changeSpeed, playOrPause, replay, toggleReplay } from "../replay";
import { offline, type View, view } from "../session";
import {
	compare,
	focused,
	jump,
	move,
	moveCompared,
	pause,
	showUnit,
	showWhole,
	sync,
	syncAll,
	toNow,
	zoom,
} from "../time-navigation";
import { oneOf, UNITS } from "../times";
import { exportCsv, exportPng } from "./export";
import { alertOn } from "./frame";
import { searchOddities } from "./odd";
import { shareSheet } from "./share";

/** A key with what it does in words; `act` is not given where the browser does it. */
export interface Key {
	key: string;
	words: string;
	act: () => void;
	/** Whether it is heard on the other pages as well. */
	everywhere?: true;
	/** Whether it asks the service: a file that was shared does not hear it. */
	asks?: true;
}

const graph = (act: (spec: GraphSpec) => void) => () => {
	const spec = focused();
	if (spec) act(spec);
};
const page = (other: View) => () => (view.value = view.value === other ? "worksheet" : other);

/** Keys of the page. */
export const PAGE_KEYS: Key[] = [
	{ key: "?", words: "this help", act: () => (opened.value = "help"), everywhere: true },
	{ key: "+", words: "add a statistic", act: () => (opened.value = "add"), asks: true },
	{ key: "w", words: "save, open, clone a worksheet", act: () => (opened.value = "sheets"), asks: true },
	{ key: "g", words: "marks of runs and of users", act: () => (opened.value = "marks") },
	{ key: "B", words: "mark what is marked, selected or shown", act: nameMark, asks: true },
	{ key: "W", words: "share as a file", act: () => void shareSheet(), asks: true },
	{ key: "K", words: "what is kept, or back to the worksheet", act: page("kept"), everywhere: true, asks: true },
	{ key: "A", words: "alerts, or back to the worksheet", act: page("alerts"), everywhere: true, asks: true },
	{
		key: "R",
		words: "to the recordings: arrows choose one",
		act: () => document.getElementById("recording")?.focus(),
		everywhere: true,
		asks: true,
	},
	{ key: "U", words: "times in UTC, or local ones", act: toggleZone, everywhere: true },
	{ key: "T", words: "dark or light", act: toggleTheme, everywhere: true },
];

/** Keys that move in time. */
export const TIME_KEYS: Key[] = [
	{ key: "[", words: "earlier", act: () => move(-0.5) },
	{ key: "]", words: "later", act: () => move(0.5) },
	{ key: "}", words: "closer", act: () => zoom(0.5) },
	{ key: "{", words: "farther", act: () => zoom(2) },
	{ key: "0", words: "all that was recorded", act: showWhole },
	{ key: "n", words: "now: the latest, followed while it is recorded", act: toNow },
	{
		key: " ",
		words: "hold, or follow again; of a replay: play or pause",
		act: () => (replay.peek() ? playOrPause() : pause()),
	},
	{ key: "P", words: "replay, or no longer", act: toggleReplay, asks: true },
	{ key: ",", words: "of a replay: slower", act: () => changeSpeed(-1) },
	{ key: ".", words: "of a replay: faster", act: () => changeSpeed(1) },
	...UNITS.map((unit, i) => ({
		key: String(i + 1),
		words: `${oneOf(unit.name)}; again: two, three…`,
		act: () => showUnit(unit.seconds),
	})),
	{ key: "O", words: "what is odd here", act: () => void searchOddities(), asks: true },
	{ key: "d", words: "compare with the time before, or no more", act: compare, asks: true },
	{ key: "(", words: "compare with an earlier time", act: () => moveCompared(-0.5), asks: true },
	{ key: ")", words: "compare with a later time", act: () => moveCompared(0.5), asks: true },
];

/** Keys that act on the focused graph as a whole. */
export const FRAME_KEYS: Key[] = [
	{ key: "j", words: "the next graph", act: () => step(1) },
	{ key: "k", words: "the graph before", act: () => step(-1) },
	{ key: "<", words: "move it up", act: graph((spec) => shift(spec, -1)) },
	{ key: ">", words: "move it down", act: graph((spec) => shift(spec, 1)) },
	{
		key: "/",
		words: "half as wide, or as wide as the page",
		act: graph((spec) => edit(spec.id, { width: spec.width === 2 ? 1 : 2 })),
	},
	{ key: "m", words: "the smallest value, and the next", act: graph((spec) => void jump(spec, "min")), asks: true },
	{ key: "M", words: "the largest value, and the next", act: graph((spec) => void jump(spec, "max")), asks: true },
	{ key: "s", words: "a time of its own, or that of the worksheet", act: graph(sync) },
	{ key: "S", words: "all graphs show its time", act: graph(syncAll) },
	{ key: "N", words: "write an alert on it", act: graph(alertOn), asks: true },
	{ key: "e", words: "its numbers as CSV", act: graph((spec) => void exportCsv(spec)), asks: true },
	{
		key: "p",
		words: "its picture as PNG",
		act: graph((spec) => {
			const place = homeOf(spec.id);
			if (place) exportPng(place, spec);
		}),
	},
	{ key: "x", words: "close it", act: graph((spec) => close(spec.id)) },
];

/** Those of some keys that are heard on this page. */
export const heardOf = <T extends { asks?: true }>(keys: readonly T[]): T[] =>
	keys.filter((each) => !each.asks || !offline.value);

/** Take the keys until what is returned is called. Whoever handled one, such as a field or a graph, keeps it. */
export function listenToKeys(): () => void {
	const heard = (event: KeyboardEvent) => {
		if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || opened.value !== "") return;
		const target = event.target as HTMLElement;
		if (target.closest("input:not([type=checkbox], [type=range]), select, textarea, [role=menu], dialog")) return;
		if (event.key === " " && target.closest("button, input:not([type=range]), a, summary")) return;
		// a slider is moved by these
		if (target.matches("[type=range]") && /^(Arrow|Page|Home|End)/.test(event.key)) return;
		const own = heardOf([...PAGE_KEYS, ...TIME_KEYS, ...FRAME_KEYS]).find((each) => each.key === event.key);
		if (view.value !== "worksheet" && !own?.everywhere) return;
		const spec = focused();
		const theirs = graphKeys.find((each) => each.key === event.key);
		if (!own && !(theirs && spec)) return;
		event.preventDefault();
		if (own) own.act();
		else if (theirs && spec) theirs.act(spec);
	};
	document.addEventListener("keydown", heard);
	return () => document.removeEventListener("keydown", heard);
}
