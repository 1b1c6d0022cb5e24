// SPDX-License-Identifier: Apache-2.0
import { computed, signal } from "@preact/signals";
import type { Details, Payload } from "../generated/report";
import { embedded } from "../lib/decode";
import { formatPlace, type Place, parsePlace } from "./report-url";

/** What the address says; every view follows it. */
export const place = signal<Place>({ metric: "", run: "", filter: "", cell: "" });

/** The report, set once before anything is drawn. */
export const report = signal<Payload>({} as Payload);

/** Runs with observations and series: undefined until a run is opened, an error when they can't be unpacked. */
export const details = signal<Details | Error | undefined>(undefined);

/** The sections shown: the chosen one, all of them, or the first. */
export const sections = computed(() => {
	const all = report.value.sections;
	if (place.value.metric === "all") return all;
	const found = all.find((section) => section.name === place.value.metric) ?? all[0];
	return found ? [found] : [];
});

/** Place of the opened run, or -1. */
export const opened = computed(() => (place.value.run === "" ? -1 : report.value.runs.ids.indexOf(place.value.run)));

/** Go somewhere; what isn't named stays. `replace` leaves no step behind for the back button. */
export function go(change: Partial<Place>, replace = false): void {
	place.value = { ...place.peek(), ...change };
	const address = formatPlace(place.peek()) || location.pathname + location.search;
	if (replace) history.replaceState(null, "", address);
	else history.pushState(null, "", address);
}

/** Read the address now and whenever it changes. */
export function followAddress(): void {
	const read = () => {
		const found = parsePlace(location.hash);
		if (found) place.value = found;
	};
	read();
	addEventListener("hashchange", read);
	addEventListener("popstate", read);
}

/**
 * Follow links to parts of the page without touching the address.
 *
 * The address keeps the metric and the run; an anchor would replace them.
 */
export function followAnchors(): void {
	document.addEventListener("click", (event) => {
		const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>('a[href^="#"]') : null;
		if (!link || link.hash.includes("=") || event.ctrlKey || event.metaKey || event.shiftKey) return;
		const target = document.getElementById(link.hash.slice(1));
		if (!target) return;
		event.preventDefault();
		unfold(target);
		target.scrollIntoView();
		target.tabIndex = -1;
		target.focus({ preventScroll: true });
	});
}

/** Open what is folded around or in a part of the page. */
export function unfold(target: Element): void {
	for (const fold of [target.closest("details"), target.querySelector<HTMLDetailsElement>(":scope > details.fold")])
		if (fold) fold.open = true;
}

/** Paper has everything: what is folded is open while it is printed. */
export function unfoldPrinted(): void {
	let folded: HTMLDetailsElement[] = [];
	addEventListener("beforeprint", () => {
		folded = [...document.querySelectorAll<HTMLDetailsElement>("details:not([open])")];
		for (const each of folded) each.open = true;
	});
	addEventListener("afterprint", () => {
		for (const each of folded) each.open = false;
	});
}

let loading = false;

/** Unpack the runs' details, once. */
export function loadDetails(): void {
	if (loading) return;
	loading = true;
	embedded<Details>("iolab-details").then(
		(found) => {
			details.value = found;
		},
		(error: unknown) => {
			details.value = error instanceof Error ? error : new Error(String(error));
		},
	);
}
