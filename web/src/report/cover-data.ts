// SPDX-License-Identifier: Apache-2.0
import { computed } from "@preact/signals";
import type { Cover, CoverCard, CoverCell, CoverMatrix } from "../generated/report";
import { place, report } from "./state";

/** A cell of the cover with its place in its matrix. */
export interface Spot {
	cell: CoverCell;
	card: CoverCard;
	matrix: CoverMatrix;
	row: number;
	column: number;
}

/** A point of a curve: the head that it is at, and its cell. */
export interface CurvePoint {
	head: string;
	cell: CoverCell;
	isHere: boolean;
}

/** Every drawn cell in the order of its numbers in the page (`data-i`). */
export function spotsOf(cover: Cover): Spot[] {
	return cover.cards.flatMap((card) =>
		card.matrices.flatMap((matrix) =>
			matrix.cells.flatMap((cells, row) =>
				cells.flatMap((cell, column) => (cell ? [{ cell, card, matrix, row, column }] : [])),
			),
		),
	);
}

export const spots = computed(() => spotsOf(report.value.cover));

/** The cell that the address names; undefined for none. */
export const openedSpot = computed(() => (place.value.cell === "" ? undefined : spots.value[Number(place.value.cell)]));

/** The curve through a cell: its column where that has one metric, else its row. Empty where there are no neighbours. */
export function curveOf({ cell, matrix, row, column }: Spot): { factor: string; points: CurvePoint[] } {
	const down = matrix.cells.map((cells, at) => ({
		head: matrix.rows[at] ?? "",
		cell: cells[column],
		isHere: at === row,
	}));
	const along = (matrix.cells[row] ?? []).map((other, at) => ({
		head: matrix.columns[at] ?? "",
		cell: other,
		isHere: at === column,
	}));
	for (const [factor, candidates] of [
		[matrix.row_title, down],
		[matrix.column_title, along],
	] as const) {
		const points = candidates.flatMap(({ cell: other, ...point }) =>
			other?.metric === cell.metric && other.sides.length > 0 ? [{ ...point, cell: other }] : [],
		);
		if (factor && points.length > 1) return { factor, points };
	}
	return { factor: "", points: [] };
}

/** Cells of the same factor levels and variant in all matrices, one for each metric. */
export function sameCell(spot: Spot, all: readonly Spot[]): Spot[] {
	const arm = spot.cell.sides.at(-1)?.arm;
	return all.filter((other) => other.cell.cell === spot.cell.cell && other.cell.sides.at(-1)?.arm === arm);
}
