// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";

export type Zone = "UTC" | "local";

const KEY = "iolab-zone";

/** The choice of an earlier visit; UTC where there is none, or the browser keeps nothing. */
function kept(): Zone {
	try {
		return localStorage.getItem(KEY) === "local" ? "local" : "UTC";
	} catch {
		return "UTC";
	}
}

/** Whether times of day are UTC, as the command line has them, or those of the browser's time zone. */
export const zone = signal<Zone>(kept());

/** The other one. */
export function toggleZone(): void {
	zone.value = zone.peek() === "UTC" ? "local" : "UTC";
	try {
		localStorage.setItem(KEY, zone.peek());
	} catch {
		// it lasts as long as the page
	}
}

/** By how much the clock of the zone is ahead of UTC at a moment, in ms. */
export const zoneOffset = (ms: number): number =>
	zone.value === "UTC" ? 0 : -60_000 * new Date(ms).getTimezoneOffset();

/** A date with the zone's clock in its UTC fields. */
export const zoned = (ms: number): Date => new Date(ms + zoneOffset(ms));

/** The zone in words, such as "UTC" or "UTC+02:00". */
export function zoneWords(ms: number = Date.now()): string {
	const minutes = zoneOffset(ms) / 60_000;
	if (zone.value === "UTC") return "UTC";
	const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
	return `UTC${minutes < 0 ? "−" : "+"}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
}
