// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useRef } from "preact/hooks";
import { ask } from "../../api/client";
import { wordsOf } from "../../api/feed";
import { add, catalogue, edit, facts, type GraphSpec, refused, sheet } from "../../api/worksheet";
import type { StackAnswer } from "../../generated/api";
import { messageOf } from "../../lib/errors";
import { visible } from "../../lib/names";
import { choose } from "../session";
import { entryOf, HOST, rangeSteps, type Step, sheetOfHost, steps } from "./drill";
import "./menu.css";
import { completed, type Onward, onward } from "./onward";
import { type Opened, stateOf } from "./state";
import { rowWords } from "./values";

interface Entry {
	words: string;
	hint: string;
	act: () => void;
}

/** What can be asked next of a value: its breakdowns, each as a graph below this one, filled back over the whole time. */
export function Menu({ spec, unit }: { spec: GraphSpec; unit: "ns" | "B" | "" }) {
	const { menu } = stateOf(spec.id);
	const home = useRef<HTMLDivElement>(null);
	const back = useRef<HTMLElement | null>(null);
	const opened = menu.value;
	const close = () => {
		menu.value = null;
		back.current?.focus();
	};
	// before anything can be typed: a key that comes at once is the menu's
	useLayoutEffect(() => {
		if (!opened || !home.current) return undefined;
		back.current = document.activeElement as HTMLElement | null;
		settle(home.current, opened);
		home.current.querySelector<HTMLElement>("[role=menuitem]")?.focus();
		const outside = (event: Event) => {
			if (!home.current?.contains(event.target as Node)) menu.value = null;
		};
		document.addEventListener("pointerdown", outside, true);
		return () => document.removeEventListener("pointerdown", outside, true);
	}, [opened]);
	if (!opened) return null;
	const { about } = opened;
	const title =
		"value" in about
			? `${about.field} ${about.value}`
			: `${about.field} ${rowWords(about.low, about.high, unit, about.field)}`;
	const { found, others } = entriesOf(spec, about, unit);
	const elsewhere =
		"value" in about ? onward(about.of ?? spec.statistic, about.field, about.value, catalogue.value) : [];
	const answered = elsewhere.filter((each) => each.statistic !== "");
	const unanswered = elsewhere.filter((each) => each.statistic === "");
	const lacking = entryOf(spec.statistic, catalogue.value)?.lacking ?? [];
	const entry = (each: Entry) => (
		<button
			key={each.words}
			type="button"
			role="menuitem"
			tabIndex={-1}
			onClick={() => {
				close();
				each.act();
			}}
		>
			<span>{each.words}</span> <span class="quiet">{each.hint}</span>
		</button>
	);
	return (
		<div
			class="graph-menu"
			role="menu"
			aria-label={`${visible(title)}: what next`}
			tabIndex={-1}
			ref={home}
			onKeyDown={(event) => walk(event, close)}
		>
			<div class="menu-title" role="presentation">
				only {visible(title)}
			</div>
			{found.map(entry)}
			{lacking.length > 0 && (
				<div class="menu-lacking quiet" role="presentation" title={lacking.map((each) => each.why_not).join("\n")}>
					not by {lacking.map((each) => each.field).join(", ")}: not available here
				</div>
			)}
			{elsewhere.length > 0 && (
				<div class="menu-part" role="presentation">
					other sources
				</div>
			)}
			{answered.map((each) =>
				entry({ words: each.words, hint: each.hint, act: () => void follow(spec, each).catch(refuse) }),
			)}
			{unanswered.length > 0 && (
				<div
					class="menu-lacking quiet"
					role="presentation"
					title={unanswered.map((each) => `${each.words}: ${each.hint}`).join("\n")}
				>
					not recorded: {unanswered.map((each) => each.words).join(", ")}
				</div>
			)}
			{others.length > 0 && (
				<div class="menu-part" role="presentation">
					in this graph
				</div>
			)}
			{others.map(entry)}
		</div>
	);
}

const refuse = (error: unknown) => {
	refused.value = messageOf(error);
};

/** Processes that a question about a file is held to at most. */
const MOST_VALUES = 8;

/** Add the graph of another source. A question that depends on other values asks for them first, over the time that the graph shows. */
async function follow(spec: GraphSpec, step: Onward): Promise<void> {
	let { statistic } = step;
	if (step.first) {
		const { recording, from, to } = wordsOf(spec);
		const words = { recording, from, to, statistic: step.first.statistic, interval: "whole", top: MOST_VALUES };
		const values = (await ask<StackAnswer>("query", words)).keys.map((each) => each.key);
		if (values.length === 0) throw new Error(`No ${step.first.field} of this value is known in the time shown.`);
		statistic = completed(step, values);
	}
	const id = add(statistic, spec.id);
	// the source of the graph before is not one of the other layer
	if (id) edit(id, { source: "" });
}

function entriesOf(
	spec: GraphSpec,
	about: Opened["about"],
	unit: "ns" | "B" | "",
): { found: Entry[]; others: Entry[] } {
	const drill = (step: Step): Entry => ({
		words: step.words,
		hint: { heat: "map", stack: "", series: "" }[step.kind],
		act: () => void add(step.statistic, spec.id),
	});
	const state = stateOf(spec.id);
	if ("value" in about) {
		const { field, value } = about;
		const ofHost = (field === HOST && facts.value?.hosts[value]) || [];
		const worksheets = ofHost.map(
			(name, place): Entry => ({
				words:
					ofHost.length > 1 ? `worksheet of this host (${place + 1} of ${ofHost.length})` : "worksheet of this host",
				hint: visible(name),
				act: () => void choose(name, sheetOfHost(sheet.value, name)).catch(refuse),
			}),
		);
		const mode = (words: string, hint: string, change: Partial<GraphSpec>): Entry => ({
			words,
			hint,
			act: () => edit(spec.id, { highlights: [value], ...change }),
		});
		return {
			found: [...worksheets, ...steps(about.of ?? spec.statistic, field, value, catalogue.value).map(drill)],
			others:
				about.of !== undefined
					? []
					: [
							mode("highlight it", "h", { mode: "highlight" }),
							mode("show it alone", "i", { mode: "isolate" }),
							mode("leave it out", "u", { mode: "exclude" }),
						],
		};
	}
	const { low, high } = about;
	return {
		// a filter is a number with a unit; shares have none
		found:
			about.field === "utilization"
				? []
				: rangeSteps(spec.statistic, about, unit === "ns" ? "ns" : "B", catalogue.value).map(drill),
		others: [
			{
				words: "zoom to these values",
				hint: "z",
				act: () => {
					edit(spec.id, { rows: { low, high } });
					state.mark.value = null;
				},
			},
		],
	};
}

/** Where it is opened, inside the window. */
function settle(home: HTMLElement, { x, y }: Opened): void {
	const { width, height } = home.getBoundingClientRect();
	home.style.left = `${Math.max(4, Math.min(x, innerWidth - width - 4))}px`;
	home.style.top = `${Math.max(4, Math.min(y, innerHeight - height - 4))}px`;
}

function walk(event: KeyboardEvent, close: () => void): void {
	const items = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=menuitem]")];
	const now = items.indexOf(document.activeElement as HTMLElement);
	const to = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: items.length - 1 }[event.key];
	if (event.key === "Escape" || event.key === "Tab") {
		event.preventDefault();
		event.stopPropagation();
		close();
	} else if (to !== undefined) {
		event.preventDefault();
		items[(to + items.length) % items.length]?.focus();
	} else if (event.key.length === 1) {
		items.find((each, i) => i > now && each.innerText.replace(/^by /, "").startsWith(event.key))?.focus();
	}
}
