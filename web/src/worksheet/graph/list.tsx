// SPDX-License-Identifier: Apache-2.0

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { hasPercentiles } from "../../api/painters";
import { edit, follows, type GraphSpec } from "../../api/worksheet";
import { percent } from "../../canvas/ticks";
import { breakdownOf, visible } from "../../lib/names";
import { offline } from "../session";
import { type Item, stateOf } from "./state";

interface Values {
	spec: GraphSpec;
	items: readonly Item[];
	/** A sum of values in words, where they add up. */
	sum?: ((value: number) => string) | undefined;
}

/** Values that can be chosen, several with Shift; a menu has their next breakdowns. The chosen values together are below. */
export function List({ spec, items, sum }: Values) {
	const state = stateOf(spec.id);
	const inside = useRef(false);
	const order = useRef<string[]>([]);
	const field = breakdownOf(spec.statistic);
	const listed = new Set(items.map((item) => item.key));
	const words = unlisted(items);
	const absent = spec.highlights
		.filter((key) => !listed.has(key))
		.map((key): Item => ({ key, words, value: null, colour: "", single: true }));
	const shown = [...(inside.current ? held(items, order.current) : items), ...absent];
	order.current = shown.map((item) => item.key);
	const room = roomOf(shown.map((item) => item.words));
	useLayoutEffect(() => {
		state.items.value = items;
	}, [items]);
	const open = (item: Item, x: number, y: number) => {
		// a percentile is not a value of a field
		if (hasPercentiles(spec)) return;
		state.menu.value = { x, y, about: { field: spec.by || field, value: item.key } };
	};
	const together = sum && togetherOf(items, spec.highlights);
	return (
		<>
			{/* biome-ignore lint/a11y/noStaticElementInteractions: the keys and the pointer are of the lists in it */}
			<div
				class="values"
				onPointerEnter={() => {
					inside.current = true;
				}}
				onPointerLeave={(event) => {
					inside.current = keyed(event.currentTarget);
				}}
				onFocusIn={(event) => {
					inside.current ||= keyed(event.currentTarget);
				}}
				onFocusOut={(event) => {
					inside.current = event.currentTarget.matches(":hover");
				}}
				onKeyDown={walk}
			>
				<div role="listbox" aria-multiselectable="true" aria-label={`Values of ${spec.statistic}`} tabIndex={-1}>
					{shown.map((item, i) => (
						<button
							key={item.key}
							type="button"
							role="option"
							aria-selected={spec.highlights.includes(item.key)}
							class={item.single ? "value" : "value rest"}
							disabled={!item.single}
							tabIndex={i === 0 ? 0 : -1}
							title={visible(item.key)}
							style={{ gridRow: i + 1 }}
							onClick={(event) => choose(spec, item.key, event.shiftKey || event.ctrlKey || event.metaKey)}
							onContextMenu={(event) => {
								event.preventDefault();
								const box = event.currentTarget.getBoundingClientRect();
								// the menu key has no place of its own
								if (event.clientX === 0 && event.clientY === 0) open(item, box.left + 20, box.bottom);
								else open(item, event.clientX, event.clientY);
							}}
						>
							<Swatch colour={item.colour} />
							<Name text={item.key} />
							<AlignedNumber words={item.words} room={room} />
						</button>
					))}
				</div>
				{!hasPercentiles(spec) && (
					<Drills label={`Break down values of ${spec.statistic}`}>
						{shown.map(
							(item, i) =>
								item.single && <Drill key={item.key} name={item.key} row={i + 1} open={(x, y) => open(item, x, y)} />,
						)}
					</Drills>
				)}
			</div>
			{together && <Foot words={`${sum(together.sum)}, ${percent(together.share)} of all`} />}
		</>
	);
}

/** What is chosen in a list, together: read out when it changes, but not each second while live. */
export const Foot = ({ words }: { words: string }) => (
	<p class="quiet foot" role="status" aria-live={follows.value ? "off" : "polite"} title={words}>
		{words}
	</p>
);

/** What the chosen values are together and of all; null where none is chosen, or one of them is not known. */
export function togetherOf(items: readonly Item[], chosen: readonly string[]): { sum: number; share: number } | null {
	const wanted = items.filter((item) => item.single && chosen.includes(item.key));
	if (wanted.length === 0 || wanted.length < chosen.length || items.some((item) => item.value === null)) return null;
	const sumOf = (some: readonly Item[]) => some.reduce((sum, item) => sum + (item.value ?? 0), 0);
	const [sum, all] = [sumOf(wanted), sumOf(items)];
	return all > 0 ? { sum, share: sum / all } : null;
}

/** Whether keys go to something in it: it has the focus, and not by a click. */
const keyed = (place: HTMLElement): boolean => place.querySelector(":focus-visible") !== null;

/** What is said of a chosen value that is not in the list: where others are summed up it may be one of them. */
export const unlisted = (items: readonly Item[]): string =>
	items.length > 1 && items.some((item) => !item.single) ? "among the others" : "not here";

/** Shorter names are never cut; of longer ones so many letters at the end stay. */
const [SHORT, END] = [14, 7];

/** Where a name is cut for lack of room: in its middle, of a path before its last part. */
export function cutOf(name: string): number {
	// a slash in another name, as in kworker/1:0, is no directory
	const slash = name.startsWith("/") ? name.lastIndexOf("/") : 0;
	if (slash > 0) return slash;
	return name.length > SHORT ? name.length - END : 0;
}

/** A name in little room: its beginning and its end stay. */
function Name({ text }: { text: string }) {
	const shown = visible(text);
	const cut = cutOf(shown);
	if (cut < 1) return <span class="name">{shown}</span>;
	return (
		<span class="name path">
			<span class="front">{shown.slice(0, cut)}</span>
			<span class="back">{shown.slice(cut)}</span>
		</span>
	);
}

/** A number in words: its whole part, its decimals, and its unit. */
const PARTS = /^(-?\d[\d\s]*?)(\.\d+)?(\s*[^\d\s.].*)?$/;

/** The longest decimals of a list's numbers, and all their units in a line each. */
interface Room {
	decimals: string;
	units: string;
}

/** The room that numbers need after their whole part, so that all of a list have their points below each other. */
export function roomOf(words: readonly string[]): Room {
	const parts = words.map((each) => PARTS.exec(each) ?? []);
	const decimals = parts.map((each) => each[2] ?? "");
	return {
		decimals: decimals.reduce((one, other) => (other.length > one.length ? other : one), ""),
		units: [...new Set(parts.map((each) => each[3] ?? ""))].join("\n"),
	};
}

/** A number with its point below that of the others in its list; other words as they are. */
function AlignedNumber({ words, room }: { words: string; room: Room }) {
	const parts = PARTS.exec(words);
	if (!parts) return <span class="number">{words}</span>;
	return (
		<span class="number">
			{parts[1]}
			{room.decimals && <span data-room={room.decimals}>{parts[2]}</span>}
			<span data-room={room.units}>{parts[3]}</span>
		</span>
	);
}

/** Items in an order that was there before, new ones last: nothing moves under the pointer or the keys. */
export function held(items: readonly Item[], order: readonly string[]): Item[] {
	const place = new Map(order.map((key, i) => [key, i]));
	return items.toSorted((one, other) => (place.get(one.key) ?? order.length) - (place.get(other.key) ?? order.length));
}

/** Choose a value, or no longer; `more`: besides those that are chosen. */
export function choose(spec: GraphSpec, key: string, more: boolean): void {
	const { highlights } = spec;
	const without = highlights.filter((each) => each !== key);
	const had = without.length < highlights.length;
	edit(spec.id, {
		highlights: more ? (had ? without : [...highlights, key]) : had && highlights.length === 1 ? [] : [key],
	});
}

/** The handles of a list, in a column of their own: a list of options holds nothing else. */
export const Drills = ({ label, children }: { label: string; children: ComponentChildren }) =>
	offline.value ? null : (
		<fieldset class="drills" aria-label={label}>
			{children}
		</fieldset>
	);

/** The handle of a row: it opens the menu of next steps. */
export function Drill({ name, row, open }: { name: string; row: number; open: (x: number, y: number) => void }) {
	const words = `Break down ${visible(name)}`;
	return (
		<button
			type="button"
			class="drill"
			aria-haspopup="menu"
			aria-label={words}
			title={`${words} (a)`}
			tabIndex={row === 1 ? 0 : -1}
			style={{ gridRow: row }}
			onClick={(event) => {
				const box = event.currentTarget.getBoundingClientRect();
				open(box.right + 2, box.top);
			}}
		>
			<svg viewBox="0 0 12 12" aria-hidden="true">
				<path d="M2 1.5h8M2 1.5v9M2 6h4.5M2 10.5h7M8 4l2 2-2 2" />
			</svg>
		</button>
	);
}

/** Arrows go from value to value; to the right of a value is its handle. */
export function walk(event: KeyboardEvent): void {
	const here = document.activeElement as HTMLElement | null;
	const rows = (what: string) => [
		...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>(`${what}:not(:disabled)`),
	];
	const kind = here?.matches(".drill") ? ".drill" : "[role=option]";
	const all = rows(kind);
	const now = all.indexOf(here as HTMLElement);
	const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
	const other = { ArrowRight: ".drill", ArrowLeft: "[role=option]" }[event.key];
	if (by) all[Math.max(0, Math.min(all.length - 1, now + by))]?.focus();
	else if (other && other !== kind && rows(other).length > 0) rows(other)[now]?.focus();
	else return;
	event.preventDefault();
	event.stopPropagation();
}

/** The colour of a value; null if it has none. */
export function Swatch({ colour }: { colour: string }) {
	return (
		<svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">
			{colour && <rect width="10" height="10" rx="2" fill={colour} />}
		</svg>
	);
}
