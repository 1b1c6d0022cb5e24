import { effect, type Signal, signal, untracked } from "@preact/signals";
import type { RecordingFacts, Recordings, StatisticFacts, Statistics, Tick } from "../../generated/api";
import type { HeatMapGroup } from "../../generated/heatmap";
import { type ChoiceSignal, firstChoice, page, span, wholeAxis, wholeSpan } from "../../model/heatmap";
import { ask, type Drawable, follow } from "./feed";
import { HUES } from "./lines";

/** A statistic on the page. `choice` is what a reader chose of its map, there once it has one. */
export interface Panel {
	name: string;
	answer: Signal<Drawable | null>;
	problem: Signal<string>;
	choice: ChoiceSignal | null;
}

/** Lengths of time that a live page shows, in seconds. */
export const WINDOWS = [60, 300, 600, 3600];
const FIRST = ["io.ops[op]", "io.ops[latency]"];
const MOST = 8;

export const recordings = signal<RecordingFacts[]>([]);
export const chosen = signal("");
export const catalogue = signal<StatisticFacts[]>([]);
export const panels = signal<Panel[]>([]);
export const seconds = signal(60);
export const paused = signal(false);
export const tick = signal<Tick | null>(null);
export const unreachable = signal(false);
/** What is wrong with the name typed last. */
export const refused = signal("");

/** The recording that is shown. */
export const facts = (): RecordingFacts | undefined => recordings.value.find((each) => each.name === chosen.value);

/** Find out what there is, and show what the address says. */
export async function begin(): Promise<void> {
	recordings.value = (await ask<Recordings>("recordings")).recordings;
	const asked = new URLSearchParams(location.hash.slice(1));
	const name = asked.get("recording") ?? "";
	const first = recordings.value.find((each) => each.name === name) ?? recordings.value[0];
	if (!first) throw new Error("Nothing is served.");
	const window = Number(asked.get("seconds"));
	if (WINDOWS.includes(window)) seconds.value = window;
	await choose(first.name, asked.getAll("statistic"));
	effect(remember);
	effect(listen);
}

/** Show a recording with these statistics, or those that are shown now. */
export async function choose(
	name: string,
	statistics: string[] = panels.value.map((each) => each.name),
): Promise<void> {
	chosen.value = name;
	tick.value = null;
	panels.value = [];
	catalogue.value = (await ask<Statistics>("statistics", { recording: name })).statistics;
	const can = (each: string) => catalogue.value.some((one) => one.available && each.startsWith(one.name));
	for (const each of statistics.length > 0 ? statistics : FIRST.filter(can)) await add(each);
}

/** Ask for a statistic and put it on the page, the latest first. */
export async function add(name: string): Promise<boolean> {
	refused.value = "";
	try {
		if (panels.value.length >= MOST) throw new Error(`${MOST} statistics are the most at once: close one.`);
		const answer = await ask<Drawable>("query", {
			...parameters(),
			recording: chosen.value,
			statistic: name,
			drawn: "true",
		});
		const known = panels.value.find((each) => each.name === answer.statistic);
		const panel: Panel = known ?? { name: answer.statistic, answer: signal(null), problem: signal(""), choice: null };
		if (!known) panels.value = [panel, ...panels.value];
		show(panel, answer);
		return true;
	} catch (error) {
		refused.value = error instanceof Error ? error.message : String(error);
		return false;
	}
}

/** Take a statistic from the page. */
export function close(panel: Panel): void {
	panels.value = panels.value.filter((each) => each !== panel);
	gather();
}

/** Which time is asked for, in how many columns, and how many keys have a colour. */
function parameters(): Record<string, string | number> {
	const top = HUES.length;
	return facts()?.live
		? { top, from: `-${seconds.value}s`, interval: `${Math.ceil(seconds.value / 600)}s` }
		: { top, columns: 600 };
}

function show(panel: Panel, answer: Drawable): void {
	panel.problem.value = "";
	if (answer.kind === "map" && answer.group) {
		const group = answer.group;
		const before = panel.choice?.value;
		if (!panel.choice) panel.choice = signal(firstChoice(group));
		// a marked part belongs to the map that it was marked on
		else if (before?.brush) return;
		else if (before && before.crop >= 0)
			panel.choice.value = { ...before, axis: wholeAxis(group, before.axis.scale, before.crop) };
	}
	panel.answer.value = answer;
	gather();
}

/** All maps share one axis of time: the span that is shown follows the whole unless a reader has zoomed. */
function gather(): void {
	const before = page.value.groups.length > 0 ? wholeSpan.value : null;
	const zoomed = before && (span.value.from > before.from || span.value.to < before.to);
	const groups: HeatMapGroup[] = panels.value.flatMap(({ answer: { value } }) =>
		value?.kind === "map" && value.group ? [value.group] : [],
	);
	page.value = { ...page.value, groups };
	if (!zoomed && groups.length > 0) span.value = wholeSpan.value;
}

/** Keep the stream on what is shown. */
function listen(): (() => void) | undefined {
	const names = panels.value.map((each) => each.name);
	if (!facts()?.live || paused.value) return undefined;
	return follow(
		{ recording: chosen.value, statistic: names, seconds: seconds.value, top: HUES.length, drawn: "true" },
		{
			tick: (now) => {
				tick.value = now;
				if (!now.live)
					recordings.value = recordings.value.map((each) =>
						each.name === now.recording ? { ...each, live: false } : each,
					);
			},
			answer: (answer) => {
				const panel = untracked(() => panels.value).find((each) => each.name === answer.statistic);
				if (panel) show(panel, answer);
			},
			problem: (words) => {
				const panel = untracked(() => panels.value).find((each) => words.startsWith(`${each.name}: `));
				if (panel) panel.problem.value = words;
			},
			lost: (gone) => {
				unreachable.value = gone;
			},
		},
	);
}

/** The address says what is shown. */
function remember(): void {
	const words = new URLSearchParams({ recording: chosen.value, seconds: String(seconds.value) });
	for (const panel of panels.value) words.append("statistic", panel.name);
	history.replaceState(null, "", `#${words}`);
}

/** The statistic of one value of a breakdown; the breakdown stands last in a name. */
export function narrowed(name: string, field: string, value: string): string {
	const quoted = `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
	return `${name.slice(0, name.length - field.length - 2)}[${field}=${quoted}]`;
}

/** The field that a statistic is broken down by, "" for none. */
export function breakdownOf(name: string): string {
	return /\[([a-z_]+)\]$/.exec(name)?.[1] ?? "";
}
