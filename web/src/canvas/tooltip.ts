// SPDX-License-Identifier: Apache-2.0
let box: HTMLElement | undefined;
let place: HTMLElement | null = null;

/** Show tooltips inside of this element, which has their styles; null: in the document. */
export function tooltipIn(element: HTMLElement | null): void {
	place = element;
}

/** A value with the colour that it has in the graph. `near`: the pointer is on it. */
export interface Coloured {
	words: string;
	colour: string;
	near: boolean;
}

/** A line of a tooltip; one without a name is a sentence. */
export interface TooltipRow {
	name: string;
	words: string;
	colour: string;
	near: boolean;
}

/** Show names and values next to the pointer; no value hides them. Text only: markup in a name stays a name. */
export function tooltip(_handler: unknown, event: MouseEvent, _item: unknown, value: unknown): void {
	const rows = value === null || value === undefined ? [] : tooltipRows(value);
	box ??= document.body.appendChild(
		Object.assign(document.createElement("div"), { className: "tooltip", role: "tooltip" }),
	);
	// An open dialog is above everything else on the page, so the box has to move into it.
	const home = document.querySelector("dialog[open]") ?? place ?? document.body;
	if (box.parentElement !== home) home.append(box);
	box.hidden = rows.length === 0;
	box.replaceChildren(...rows.map(rowElement));
	if (rows.length === 0) return;
	const { width, height } = box.getBoundingClientRect();
	const left = event.clientX + 14 + width > innerWidth ? event.clientX - 14 - width : event.clientX + 14;
	const top = event.clientY + 14 + height > innerHeight ? event.clientY - 14 - height : event.clientY + 14;
	box.style.left = `${Math.max(4, left)}px`;
	box.style.top = `${Math.max(4, top)}px`;
}

/** The lines of a tooltip: its time and sentences (what follows "nothing") have no name. */
export function tooltipRows(value: unknown): TooltipRow[] {
	if (typeof value !== "object" || value === null) return [{ name: "", words: String(value), colour: "", near: false }];
	return Object.entries(value).map(([name, part]) => {
		const { words, colour, near }: Coloured =
			typeof part === "object" && part !== null ? part : { words: String(part), colour: "", near: false };
		if (name === "nothing") return { name: "", words: `nothing ${words}`, colour, near };
		return { name: name === "time" ? "" : name, words, colour, near };
	});
}

function rowElement({ name, words, colour, near }: TooltipRow): HTMLElement {
	const row = document.createElement("div");
	row.classList.toggle("near", near);
	if (colour) {
		const swatch = row.appendChild(document.createElement("i"));
		swatch.style.background = colour;
	}
	if (name) row.appendChild(document.createElement("span")).textContent = `${name}: `;
	row.appendChild(document.createElement(name ? "b" : "span")).textContent = words;
	return row;
}
