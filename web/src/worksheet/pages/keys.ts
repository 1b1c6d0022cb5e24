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
	{ key: "w", words: "save, open or clone a worksheet", act: () => (opened.value = "sheets"), asks: true },
	{ key: "g", words: "list marks of runs and users", act: () => (opened.value = "marks") },
	{
		key: "B",
		words: "set a mark: of the marked part, the selected second or the time shown",
		act: nameMark,
		asks: true,
	},
	{ key: "W", words: "share as a file", act: () => void shareSheet(), asks: true },
	{ key: "K", words: "kept statistics, or back to the worksheet", act: page("kept"), everywhere: true, asks: true },
	{ key: "A", words: "alerts, or back to the worksheet", act: page("alerts"), everywhere: true, asks: true },
	{
		key: "R",
		words: "go to the recordings; arrows select one",
		act: () => document.getElementById("recording")?.focus(),
		everywhere: true,
		asks: true,
	},
	{ key: "U", words: "UTC or local time", act: toggleZone, everywhere: true },
	{ key: "T", words: "dark or light", act: toggleTheme, everywhere: true },
];

/** Keys that move in time. */
export const TIME_KEYS: Key[] = [
	{ key: "[", words: "earlier", act: () => move(-0.5) },
	{ key: "]", words: "later", act: () => move(0.5) },
	{ key: "}", words: "zoom in", act: () => zoom(0.5) },
	{ key: "{", words: "zoom out", act: () => zoom(2) },
	{ key: "0", words: "show the whole recording", act: showWhole },
	{ key: "n", words: "show the latest; a live recording is followed", act: toNow },
	{
		key: " ",
		words: "pause or follow; in a replay: play or pause",
		act: () => (replay.peek() ? playOrPause() : pause()),
	},
	{ key: "P", words: "start or end a replay", act: toggleReplay, asks: true },
	{ key: ",", words: "slow a replay down", act: () => changeSpeed(-1) },
	{ key: ".", words: "speed a replay up", act: () => changeSpeed(1) },
	...UNITS.map((unit, i) => ({
		key: String(i + 1),
		words: `${oneOf(unit.name)}; again: two, three…`,
		act: () => showUnit(unit.seconds),
	})),
	{ key: "O", words: "search for what is odd here", act: () => void searchOddities(), asks: true },
	{ key: "d", words: "compare with the time before, on or off", act: compare, asks: true },
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
		words: "half or full width",
		act: graph((spec) => edit(spec.id, { width: spec.width === 2 ? 1 : 2 })),
	},
	{
		key: "m",
		words: "select the smallest value; again: the next",
		act: graph((spec) => void jump(spec, "min")),
		asks: true,
	},
	{
		key: "M",
		words: "select the largest value; again: the next",
		act: graph((spec) => void jump(spec, "max")),
		asks: true,
	},
	{ key: "s", words: "its own time, or that of the worksheet", act: graph(sync) },
	{ key: "S", words: "apply its time to all graphs", act: graph(syncAll) },
	{ key: "N", words: "set an alert on it", act: graph(alertOn), asks: true },
	{ key: "e", words: "save its numbers as CSV", act: graph((spec) => void exportCsv(spec)), asks: true },
	{
		key: "p",
		words: "save its picture as PNG",
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
