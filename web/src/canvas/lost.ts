// SPDX-License-Identifier: Apache-2.0
import type { LossesOfKind } from "../generated/maps";
import { thousands } from "./ticks";

/** Columns joined to cells of a drawing: the first one's column, how many are one, and how many cells there are. */
interface Shape {
	first: number;
	joined: number;
	columns: number;
}

/** The number of lost ones of a kind; 0 if unknown. */
export type Lost = readonly [kind: LossesOfKind["kind"], count: number];

/** Whether something was lost in a column that is known: only then there is a strip. */
export const anyLost = (lost: readonly LossesOfKind[]): boolean => lost.some(({ columns }) => columns.length > 0);

/** Whatever was lost, added up by cell: 0 where the number is unknown. */
export function lostBars(lost: readonly LossesOfKind[], cells: Shape): Map<number, number> {
	const found = new Map<number, number>();
	for (const { columns } of lost)
		for (const [column, count] of columns) {
			const cell = Math.floor((column - cells.first) / cells.joined);
			if (cell >= 0 && cell < cells.columns) found.set(cell, (found.get(cell) ?? 0) + count);
		}
	return found;
}

/** What was lost in columns from `first` to before `past`, by kind. */
export function lostIn(lost: readonly LossesOfKind[], first: number, past: number): Lost[] {
	return lost.flatMap(({ kind, columns }): Lost[] => {
		const held = columns.filter(([column]) => column >= first && column < past);
		return held.length > 0 ? [[kind, held.reduce((sum, [, count]) => sum + count, 0)]] : [];
	});
}

/** What was lost, in the terminal's words: `1 204 records were lost, 3 records could not be read`; "" for nothing. */
export const lostWords = (lost: readonly Lost[]): string => lost.map(([kind, count]) => words(kind, count)).join(", ");

function words(kind: Lost[0], count: number): string {
	const many = count === 0 ? "an unknown number of" : thousands(count);
	const of = (one: string, more: string) => `${many} ${count === 1 ? one : more}`;
	if (kind === "unpaired") return of("unmatched issue or completion event", "unmatched issue or completion events");
	return `${of("record", "records")} ${kind === "damaged" ? "could not be read" : count === 1 ? "was lost" : "were lost"}`;
}

const NAMES: Record<Lost[0], string> = { lost: "lost", damaged: "unreadable", unpaired: "unmatched" };

/** The text next to a strip. */
export function lostName(lost: readonly LossesOfKind[]): string {
	const kinds = lost.filter(({ columns }) => columns.length > 0);
	return kinds.length === 1 && kinds[0] ? NAMES[kinds[0].kind] : "losses";
}
