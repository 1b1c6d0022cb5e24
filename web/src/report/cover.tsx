// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { type Spot, spots } from "./cover-data";
import { Curves } from "./curves";
import { go } from "./state";
import { showNumbers } from "./summary";

/** The cell under the pointer or the focus, with its place on the screen. */
const pointed = signal<{ spot: Spot; box: DOMRect } | null>(null);

let cover: HTMLElement | null = null;

/** Keep the cover that the file has as HTML, before the page is drawn over it. */
export function keepCover(): void {
	cover = document.getElementById("cover");
}

/** The matrix of changes, as the file has it, with details, keys and links. */
export function Cover() {
	const home = useRef<HTMLDivElement>(null);
	useLayoutEffect(() => {
		if (!home.current || !cover) return;
		home.current.append(cover);
		return enliven(cover);
	}, []);
	return (
		<>
			<div ref={home} />
			<Tip />
		</>
	);
}

/** Details under the pointer and the focus, a click that opens a cell, arrow keys within a matrix. */
function enliven(home: HTMLElement): () => void {
	const ending = new AbortController();
	const { signal } = ending;
	for (const table of home.querySelectorAll("table")) {
		table.setAttribute("role", "grid");
		for (const cell of cellsOf(table)) {
			cell.tabIndex = -1;
			cell.setAttribute("aria-haspopup", "dialog");
		}
		const first = cellsOf(table)[0];
		if (first) first.tabIndex = 0;
	}
	fillScreen(home);
	const show = (event: Event) => {
		const cell = cellAt(event.target);
		const spot = cell && spotOf(cell);
		pointed.value = cell && spot ? { spot, box: cell.getBoundingClientRect() } : null;
	};
	const hide = () => {
		pointed.value = null;
	};
	const open = (cell: HTMLElement) => {
		hide();
		go({ cell: cell.dataset.i ?? "", run: "" });
	};
	home.addEventListener("pointerover", show, { signal });
	home.addEventListener("focusin", show, { signal });
	home.addEventListener("pointerleave", hide, { signal });
	home.addEventListener("focusout", hide, { signal });
	addEventListener("scroll", hide, { signal, passive: true, capture: true });
	home.addEventListener(
		"click",
		(event) => {
			const cell = cellAt(event.target);
			if (cell) open(cell);
			const link = event.target instanceof Element ? event.target.closest("a") : null;
			const metric = link && new URLSearchParams(link.hash.slice(1)).get("metric");
			if (metric) showNumbers(event, metric);
		},
		{ signal },
	);
	home.addEventListener(
		"keydown",
		(event) => {
			const cell = cellAt(event.target);
			if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
			const next = neighbour(cell, event.key);
			if (next) {
				cell.tabIndex = -1;
				next.tabIndex = 0;
				next.focus();
			} else if (event.key === "Enter" || event.key === " ") open(cell);
			else if (event.key === "Escape") hide();
			else return;
			event.preventDefault();
		},
		{ signal },
	);
	return () => ending.abort();
}

/** Open further matrices while the whole cover fits the screen: large screens show more at once. */
function fillScreen(home: HTMLElement): void {
	for (const card of home.querySelectorAll<HTMLDetailsElement>("details.card:not([open])")) {
		card.open = true;
		if (home.getBoundingClientRect().bottom <= innerHeight) continue;
		card.open = false;
		return;
	}
}

const cellsOf = (table: Element) => [...table.querySelectorAll<HTMLElement>("td[data-i]")];

const cellAt = (target: EventTarget | null) =>
	target instanceof Element ? target.closest<HTMLElement>("td[data-i]") : null;

const spotOf = (cell: HTMLElement) => spots.value[Number(cell.dataset.i)];

const STEPS: Record<string, readonly [number, number]> = {
	ArrowUp: [-1, 0],
	ArrowDown: [1, 0],
	ArrowLeft: [0, -1],
	ArrowRight: [0, 1],
};

/** The cell that a key leads to within its matrix; empty places are skipped. */
function neighbour(cell: HTMLElement, key: string): HTMLElement | null {
	const row = cell.closest("tr");
	const rows = [...(row?.closest("tbody")?.querySelectorAll("tr") ?? [])];
	if (!row) return null;
	const inRow = [...row.querySelectorAll<HTMLElement>("td[data-i]")];
	if (key === "Home") return inRow[0] ?? null;
	if (key === "End") return inRow.at(-1) ?? null;
	const step = STEPS[key];
	if (!step) return null;
	const column = [...row.children].indexOf(cell);
	for (let at = 1; at < 10_000; at++) {
		const place = rows[rows.indexOf(row) + at * step[0]]?.children[column + at * step[1]];
		if (!place) return null;
		if (place instanceof HTMLElement && place.dataset.i !== undefined) return place;
	}
	return null;
}

/** The numbers of a cell and the curves of both arms, next to it. */
function Tip() {
	const home = useRef<HTMLDivElement>(null);
	const shown = pointed.value;
	useLayoutEffect(() => {
		const tip = home.current;
		if (!tip || !shown) return;
		const { width, height } = tip.getBoundingClientRect();
		const { box } = shown;
		const right = box.right + 10 + width <= innerWidth;
		const left = right ? box.right + 10 : box.left - 10 - width;
		const isBeside = right || left >= 4;
		const below = box.bottom + 8 + height <= innerHeight;
		const top = isBeside ? box.top - 20 : below ? box.bottom + 8 : box.top - 8 - height;
		tip.style.left = `${isBeside ? left : Math.max(4, Math.min(box.left, innerWidth - width - 4))}px`;
		tip.style.top = `${Math.max(4, Math.min(top, innerHeight - height - 4))}px`;
	}, [shown]);
	if (!shown) return null;
	const { spot } = shown;
	return (
		<div class="tip no-print" role="tooltip" ref={home}>
			<strong>{spot.cell.title}</strong>
			<Facts spot={spot} />
			<Curves spot={spot} width={340} height={140} />
		</div>
	);
}

/** Values, change, test and verdict of a cell in words. */
function Facts({ spot }: { spot: Spot }) {
	return (
		<dl>
			{spot.cell.facts.map(([name, text]) => (
				<>
					<dt key={`${name}-name`}>{name}</dt>
					<dd key={name}>{text}</dd>
				</>
			))}
		</dl>
	);
}
