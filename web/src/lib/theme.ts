// SPDX-License-Identifier: Apache-2.0
import { computed, effect, signal } from "@preact/signals";
import type { ThemeColours } from "../generated/maps";

export type Theme = "light" | "dark";

const dark = typeof matchMedia === "undefined" ? null : matchMedia("(prefers-color-scheme: dark)");

/** The colours in use: the system's until the reader chooses. */
export const theme = signal<Theme>(dark?.matches ? "dark" : "light");

/** Paper is white: while printing, charts and page are light whatever the screen shows. */
export const printing = signal(false);

/** The colours of canvases by theme, as Python has them: each page is given them with its document. */
export const palettes = signal<Record<Theme, ThemeColours>>(undefined as unknown as Record<Theme, ThemeColours>);

/** Take the palettes that a served page holds. */
export function readPalettes(): void {
	palettes.value = JSON.parse(document.getElementById("iolab-colours")?.textContent ?? "");
}

/** The colours in use. */
export const colours = computed<ThemeColours>(
	() => palettes.value[theme.value === "dark" && !printing.value ? "dark" : "light"],
);

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
