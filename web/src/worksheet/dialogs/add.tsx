// SPDX-License-Identifier: Apache-2.0
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask } from "../../api/client";
import { add, catalogue, edit, focus, refused, sheet, time } from "../../api/worksheet";
import type { StackAnswer } from "../../generated/api";
import { breakdownOf } from "../../lib/names";
import { fieldTitle, groupTitle, titleOf } from "../../lib/titles";
import { type Choice, choicesOf, type KnownValue, search } from "../choices";
import { refreshCatalogue } from "../session";
import { Dialog, opened } from "./dialogs";

/** Add a statistic: by group, statistic and breakdown, or by typing. */
export function AddDialog() {
	return (
		<Dialog name="add" title="Add a statistic">
			<Chooser />
		</Dialog>
	);
}

const KINDS = { series: "number", stack: "by value", heat: "heat map" };

function Chooser() {
	const all = useMemo(() => choicesOf(catalogue.value), [catalogue.value]);
	const [typed, setTyped] = useState("");
	const [picked, setPicked] = useState("");
	const [at, setAt] = useState(0);
	const [values, setValues] = useState<KnownValue[]>([]);
	const list = useRef<HTMLDivElement>(null);
	const groups = [...new Set(all.map((each) => each.group))];
	// what can be had may be known later than the first key
	const group = picked || ((all.find((each) => !each.why) ?? all[0])?.group ?? "");
	const exact = typed.includes("[") || typed.includes(".") ? exactly(typed, all) : [];
	const found = typed.trim() ? named(exact, search(all, typed, values)) : all.filter((each) => each.group === group);
	const chosen = found[Math.min(at, found.length - 1)];
	useEffect(() => {
		const stop = new AbortController();
		void refreshCatalogue();
		void knownValues(stop.signal).then((known) => stop.signal.aborted || setValues(known));
		return () => stop.abort();
	}, []);
	useEffect(() => {
		list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
	});
	const take = (choice: Choice | undefined, more: boolean) => {
		if (!choice || choice.why) return;
		const id = add(choice.statistic, focus.value);
		if (id && choice.look) edit(id, choice.look);
		if (id && !more) opened.value = "";
	};
	const keys = (event: KeyboardEvent) => {
		const steps: Record<string, () => void> = {
			ArrowDown: () => setAt(Math.min(found.length - 1, at + 1)),
			ArrowUp: () => setAt(Math.max(0, at - 1)),
			PageDown: () => setAt(Math.min(found.length - 1, at + 10)),
			PageUp: () => setAt(Math.max(0, at - 10)),
			Enter: () => take(chosen, event.shiftKey),
		};
		if (!typed) {
			const turn = (by: number) => () => {
				setPicked(groups[(groups.indexOf(group) + by + groups.length) % groups.length] ?? group);
				setAt(0);
			};
			Object.assign(steps, { ArrowRight: turn(1), ArrowLeft: turn(-1) });
		}
		const step = steps[event.key];
		if (!step) return;
		event.preventDefault();
		step();
	};
	return (
		<>
			<input
				id="statistic"
				role="combobox"
				aria-expanded="true"
				aria-controls="choices"
				aria-activedescendant={chosen ? `choice-${found.indexOf(chosen)}` : ""}
				aria-label="Statistic"
				placeholder="Type: iops, p99, latency by disk, a process… or io.ops[op=write][latency]"
				value={typed}
				spellcheck={false}
				autocomplete="off"
				maxLength={4096}
				data-first
				onInput={(event) => {
					setTyped(event.currentTarget.value);
					setAt(0);
				}}
				onKeyDown={keys}
			/>
			<div class="columns">
				<nav class="groups" aria-label="Groups">
					{groups.map((each) => (
						<button
							key={each}
							type="button"
							tabIndex={-1}
							aria-pressed={!typed && each === group}
							class={all.every((one) => one.group !== each || one.why) ? "lacking" : undefined}
							title={each}
							onClick={() => {
								setTyped("");
								setPicked(each);
								setAt(0);
							}}
						>
							{groupTitle(each)}
						</button>
					))}
				</nav>
				{found.length === 0 && <Nothing all={all} />}
				<div id="choices" role="listbox" aria-label="Statistics" ref={list} hidden={found.length === 0}>
					{found.map((each, i) => (
						// biome-ignore lint/a11y/useKeyWithClickEvents: keys are those of the field above
						<div
							key={`${each.statistic} ${i}`}
							id={`choice-${i}`}
							role="option"
							tabIndex={-1}
							aria-selected={each === chosen}
							aria-disabled={each.why !== ""}
							class={each.field ? "by" : "plain"}
							data-choice={each.statistic}
							onClick={(event) => take(each, event.shiftKey)}
						>
							<span class="name">
								{typed || !each.field
									? titleOf(each.statistic)
									: `by ${fieldTitle(each.field, each.statistic.split(".")[0])}`}
								{lookWords(each)} <code>{each.statistic}</code>
							</span>
							<span class={`kind ${each.kind}`}>{KINDS[each.kind]}</span>
							<span class="about">{each.why || each.about}</span>
						</div>
					))}
				</div>
			</div>
			{refused.value && <p class="problem">{refused.value}</p>}
			<p class="quiet">
				↑ ↓ choose · ← → group · Enter adds · Shift+Enter adds and stays · <span class="kind heat">heat map</span>: how
				many at each time and value
			</p>
		</>
	);
}

/** Values of these are found by their names. */
const NAMED = ["io.ops[device]", "io.ops[process]", "file.ops[process]", "nfs.ops[client]"];
const MOST_VALUES = 50;

/** The disks, processes and clients of the time shown. */
async function knownValues(signal: AbortSignal): Promise<KnownValue[]> {
	const can = new Set(choicesOf(catalogue.peek()).flatMap((each) => (each.why ? [] : [each.statistic])));
	const { from, until } = time.peek();
	const span = { from: BigInt(Math.max(0, Math.floor(from))).toString(), to: BigInt(Math.ceil(until)).toString() };
	const asked = NAMED.filter((name) => can.has(name)).map(async (statistic) => {
		const words = { recording: sheet.peek().recording, statistic, ...span, interval: "whole", top: MOST_VALUES };
		const answer = await ask<StackAnswer>("query", words, signal);
		return answer.keys.map(({ key }) => ({ field: breakdownOf(statistic), value: key }));
	});
	const found = (await Promise.allSettled(asked)).flatMap((each) => (each.status === "fulfilled" ? each.value : []));
	return [...new Map(found.map((each) => [`${each.field} ${each.value}`, each])).values()];
}

/** How the graph of a choice differs from the usual. */
const lookWords = ({ look }: Choice): string =>
	look?.painter === "percentiles" ? ", as percentiles" : look?.by ? `, each ${fieldTitle(look.by)} in colour` : "";

/** What was typed as a name, and what else suits it. */
const named = (exact: readonly Choice[], found: readonly Choice[]): Choice[] => [
	...exact,
	...found.filter((each) => each.statistic !== exact[0]?.statistic),
];

/** What can be typed, where nothing was found. */
function Nothing({ all }: { all: readonly Choice[] }) {
	const some = (words: readonly string[]) => [...new Set(words)].filter(Boolean).slice(0, 12).join(", ");
	return (
		<p class="nothing" role="status">
			No statistic matches. What can be named: a group ({some(all.map((each) => each.group))}), a field (
			{some(all.map((each) => each.field))}), an operation (read, write), or all of it: io.ops[op=write][latency].
		</p>
	);
}

/** A typed name of a statistic that is not in the list. */
function exactly(typed: string, all: readonly Choice[]): Choice[] {
	const statistic = typed.trim();
	const base = all.find((each) => !each.field && statistic.startsWith(each.name));
	if (!base || all.some((each) => each.statistic === statistic)) return [];
	const field = /\[([a-z_]+)\]$/.exec(statistic)?.[1] ?? "";
	const kind = all.find((each) => each.name === base.name && each.field === field)?.kind ?? "series";
	return [{ ...base, statistic, field, kind, about: "as typed" }];
}
