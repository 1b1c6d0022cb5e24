// SPDX-License-Identifier: Apache-2.0
let box: HTMLElement | undefined;

/** Show a chart's words beside the pointer; nothing to say hides them. Text only: markup in a name stays a name. */
export function tooltip(_handler: unknown, event: MouseEvent, _item: unknown, value: unknown): void {
	const text = value === null || value === undefined ? "" : tooltipText(value);
	box ??= document.body.appendChild(
		Object.assign(document.createElement("div"), { className: "tooltip", role: "tooltip" }),
	);
	// An open dialog lies above everything else on the page, so the box has to move into it.
	const home = document.querySelector("dialog[open]") ?? document.body;
	if (box.parentElement !== home) home.append(box);
	box.hidden = text === "";
	box.textContent = text;
	if (text === "") return;
	const { width, height } = box.getBoundingClientRect();
	const left = event.clientX + 14 + width > innerWidth ? event.clientX - 14 - width : event.clientX + 14;
	const top = event.clientY + 14 + height > innerHeight ? event.clientY - 14 - height : event.clientY + 14;
	box.style.left = `${Math.max(4, left)}px`;
	box.style.top = `${Math.max(4, top)}px`;
}

/** A tooltip's value as lines of text; what begins with "nothing" is a sentence. */
export function tooltipText(value: unknown): string {
	if (typeof value !== "object" || value === null) return String(value);
	return Object.entries(value)
		.map(([name, part]) => `${name}${name === "nothing" ? "" : ":"} ${String(part)}`)
		.join("\n");
}
