// SPDX-License-Identifier: Apache-2.0
/**
 * First bucket of each row: buckets between these edges (pixels, ascending) join until a row is `least` high. What remains at
 * the top joins the last row. Python does the same for pictures; `tests/vectors/heatmap.json` holds both to it.
 */
export function joinedRows(edges: readonly number[], least: number): number[] {
	const starts = [0];
	let start = edges[0] ?? 0;
	for (let bucket = 1; bucket < edges.length - 1; bucket++) {
		const edge = edges[bucket] ?? 0;
		if (edge - start >= least - 1e-9) {
			starts.push(bucket);
			start = edge;
		}
	}
	const last = edges[edges.length - 1] ?? 0;
	if (starts.length > 1 && last - (edges[starts[starts.length - 1] ?? 0] ?? 0) < least - 1e-9) starts.pop();
	return starts;
}

/**
 * Factors of the rows between these edges (in any unit of height) for their colours. A row twice as high as the usual one holds twice
 * as many I/Os of the same density. In steps of 1/32, so that equal rows are equal. Python does the same for pictures;
 * `tests/vectors/heatmap.json` holds both to it.
 */
export function densitiesOf(edges: readonly number[]): number[] {
	const heights = edges.slice(1).map((edge, row) => edge - (edges[row] ?? 0));
	const usual = heights.toSorted((a, b) => a - b)[heights.length >> 1] ?? 1;
	return heights.map((height) => Math.max(1, Math.floor((32 * usual) / height + 0.5)) / 32);
}

/** The last place in an ascending list with a value not above `value`; -1 below the first. */
export function placeOf(list: readonly number[], value: number): number {
	let low = 0;
	let high = list.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if ((list[middle] ?? Number.POSITIVE_INFINITY) <= value) low = middle + 1;
		else high = middle;
	}
	return low - 1;
}
