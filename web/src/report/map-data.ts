// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import type { HeatMapGroup } from "../generated/maps";
import type { CellMaps, MapCell, Maps } from "../generated/report";
import { embedded } from "../lib/decode";

/** The runs' maps: undefined until the reader comes to them, an error when they can't be unpacked. */
export const maps = signal<Maps | Error | undefined>(undefined);

/** Whether the report has maps of any run. */
export const hasMaps = () => document.getElementById("iolab-maps") !== null;

/** The cell that is shown, by its place. */
export const mapPlace = signal(0);

let loading = false;

/** Unpack the maps, once. */
export function loadMaps(): void {
	if (loading) return;
	loading = true;
	embedded<Maps>("iolab-maps").then(
		(found) => {
			maps.value = found;
		},
		(error: unknown) => {
			maps.value = error instanceof Error ? error : new Error(String(error));
		},
	);
}

/** Repetitions of a cell that have maps, ascending. */
export function repetitions(cell: MapCell): number[] {
	const every = cell.maps.flatMap((part) => part.of.map((one) => one.repetition));
	return [...new Set(every)].sort((one, other) => one - other);
}

/** The maps of one repetition, on the axes of all; the difference is drawn of two variants that one observer saw. */
export function groupOf(part: CellMaps, repetition: number): HeatMapGroup | null {
	const kept = part.of.flatMap((one, place) => (one.repetition === repetition ? [place] : []));
	if (kept.length === 0) return null;
	const [first, second] = kept.map((place) => part.of[place]);
	const difference = kept.length === 2 && first?.seen === second?.seen && first?.variant !== second?.variant;
	const shown = kept.flatMap((place) => part.group.maps[place] ?? []);
	const columns = Math.max(...shown.map((map) => map.columns));
	return { ...part.group, difference, columns, maps: shown };
}
