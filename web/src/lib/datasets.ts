// SPDX-License-Identifier: Apache-2.0
import type { Dataset } from "../generated/report";

export type Row = Record<string, unknown>;

/** A dataset as rows, the way Vega takes them. */
export function rows(dataset: Dataset): Row[] {
	const columns = Object.entries(dataset.columns);
	return Array.from({ length: dataset.length }, (_, i) => {
		const row: Row = { ...dataset.constants };
		for (const [name, values] of columns) row[name] = values[i];
		return row;
	});
}

function csvField(value: unknown): string {
	if (value === null || value === undefined) return "";
	const text = Array.isArray(value) ? value.join(" ") : String(value);
	return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A dataset as CSV (RFC 4180 with line feeds): the given columns, numbers unrounded, absent values empty. */
export function csv(dataset: Dataset, columns: readonly string[]): string {
	const lines = rows(dataset).map((row) => columns.map((name) => csvField(row[name])).join(","));
	return `${[columns.map(csvField).join(","), ...lines].join("\n")}\n`;
}
