// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { HeatMapCounts } from "../src/generated/maps";
import type { CellMaps, MapCell, RunMap } from "../src/generated/report";
import { groupOf, repetitions } from "../src/report/map-data";

const map = (label: string, columns: number): HeatMapCounts => ({
	label,
	begins: "",
	columns,
	events: 1,
	cells: { starts: [0, 1], rows: [0], counts: [1] },
	gaps: [],
	unrecorded: [],
	lost: [],
	overlays: [],
	dimensions: [],
	notes: [],
});

function part(of: [variant: string, repetition: number, seen: RunMap["seen"], columns?: number][]): CellMaps {
	return {
		of: of.map(([variant, repetition, seen], run) => ({ run, variant, repetition, seen })),
		group: {
			y: "latency",
			title: "Latency",
			unit: "ns",
			weight: "count",
			interval_ns: 1000,
			columns: 50,
			bounds: [0, 10],
			y_scale: "log",
			color: "rank",
			low: 1,
			high: 10,
			least: 1,
			crops: [[0, 10]],
			lines: [],
			show_lines: false,
			difference: false,
			maps: of.map(([variant, repetition, seen, columns]) => map(`${variant} ${repetition} ${seen}`, columns ?? 50)),
		},
	};
}

describe("maps of runs", () => {
	it("are those of one repetition, on the axes of all", () => {
		const two = part([
			["a", 1, "fio"],
			["b", 1, "fio", 30],
			["a", 2, "fio", 40],
		]);
		expect(groupOf(two, 1)?.maps.map((each) => each.label)).toEqual(["a 1 fio", "b 1 fio"]);
		expect(groupOf(two, 1)?.low).toBe(two.group.low);
		expect(groupOf(two, 2)?.columns).toBe(40);
		expect(groupOf(two, 3)).toBeNull();
	});

	it("have a difference of two variants that one observer saw, and of nothing else", () => {
		const difference = (...of: Parameters<typeof part>[0]) => groupOf(part(of), 1)?.difference;
		expect(difference(["a", 1, "fio"], ["b", 1, "fio"])).toBe(true);
		expect(difference(["a", 1, "fio"], ["a", 1, "block"])).toBe(false);
		expect(difference(["a", 1, "fio"], ["a", 1, "fio"])).toBe(false);
		expect(difference(["a", 1, "fio"])).toBe(false);
		expect(difference(["a", 1, "fio"], ["b", 1, "fio"], ["c", 1, "fio"])).toBe(false);
	});

	it("are listed by the repetitions that any of them has", () => {
		const cell: MapCell = {
			title: "",
			maps: [
				part([["a", 3, "fio"]]),
				part([
					["b", 1, "fio"],
					["a", 3, "fio"],
				]),
			],
		};
		expect(repetitions(cell)).toEqual([1, 3]);
	});
});
