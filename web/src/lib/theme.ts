// SPDX-License-Identifier: Apache-2.0
import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark";

const dark = typeof matchMedia === "undefined" ? null : matchMedia("(prefers-color-scheme: dark)");

/** The colours in use: the system's until the reader chooses. */
export const theme = signal<Theme>(dark?.matches ? "dark" : "light");

/** Paper is white: while printing, charts and page are light whatever the screen shows. */
export const printing = signal(false);

let chosen = false;

/** The other colours. */
export function toggleTheme(): void {
	chosen = true;
	theme.value = theme.value === "dark" ? "light" : "dark";
}

/** Keep the page's colours in step with the signal and the system. */
export function followTheme(): void {
	dark?.addEventListener("change", (event) => {
		if (!chosen) theme.value = event.matches ? "dark" : "light";
	});
	effect(() => {
		document.documentElement.dataset.theme = printing.value ? "light" : theme.value;
	});
	addEventListener("beforeprint", () => {
		printing.value = true;
	});
	addEventListener("afterprint", () => {
		printing.value = false;
	});
}
