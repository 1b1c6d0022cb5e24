// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Cover, CoverCell, CoverMatrix } from "../src/generated/report";
import { curveOf, sameCell, spotsOf } from "../src/report/cover-data";
import { logTicks } from "../src/report/curves";

const cell = (metric: string, name: string, value: number): CoverCell => ({
	text: "+1",
	detail: "1 -> 2",
	change: 1,
	shade: 1,
	has_direction: true,
	certainty: "significant",
	level: "OK",
	metric,
	title: name,
	cell: name,
	facts: [],
	sides: [
		{ arm: "a", value, low: null, high: null },
		{ arm: "b", value: 2 * value, low: null, high: null },
	],
	quantity: metric,
	runs: [],
});

const matrix = (row_title: string, column_title: string, cells: (CoverCell | null)[][]): CoverMatrix => ({
	title: "",
	row_title,
	column_title,
	rows: cells.map((_, i) => `r${i}`),
	columns: (cells[0] ?? []).map((_, i) => `c${i}`),
	cells,
});

const cover = (...matrices: CoverMatrix[]): Cover => ({
	title: "",
	obstacles: [],
	cautions: [],
	cards: [{ title: "", unit: "%", is_open: true, has_details: false, sentences: [], note: "", matrices }],
	legend: [],
	legend_note: "",
});

describe("cells of the cover", () => {
	const first = matrix("numjobs", "disks", [
		[cell("iops", "1 1", 1), null],
		[cell("iops", "2 1", 2), cell("iops", "2 2", 3)],
	]);
	const joint = matrix("", "numjobs", [
		[cell("iops", "1 1", 1), cell("iops", "2 1", 2)],
		[cell("lat", "1 1", 5), cell("lat", "2 1", 6)],
	]);

	it("are numbered as in the page: by row, without empty places", () => {
		expect(spotsOf(cover(first)).map((spot) => spot.cell.cell)).toEqual(["1 1", "2 1", "2 2"]);
	});

	it("have a curve through the rows of their column", () => {
		const [spot] = spotsOf(cover(first));
		const { factor, points } = curveOf(spot as never);
		expect(factor).toBe("numjobs");
		expect(points.map((point) => [point.head, point.cell.sides[0]?.value, point.isHere])).toEqual([
			["r0", 1, true],
			["r1", 2, false],
		]);
	});

	it("have a curve along their row where rows are metrics", () => {
		const { factor, points } = curveOf(spotsOf(cover(joint))[2] as never);
		expect(factor).toBe("numjobs");
		expect(points.map((point) => point.cell.metric)).toEqual(["lat", "lat"]);
	});

	it("have no curve without neighbours", () => {
		expect(curveOf(spotsOf(cover(matrix("numjobs", "", [[cell("iops", "1", 1)]])))[0] as never).points).toEqual([]);
	});

	it("belong together by factors and variant", () => {
		const all = spotsOf(cover(joint));
		expect(sameCell(all[0] as never, all).map((spot) => spot.cell.metric)).toEqual(["iops", "lat"]);
	});
});

describe("ticks of a logarithmic curve", () => {
	it("are several, whatever it spans", () => {
		expect(logTicks(164, 5045)).toEqual([300, 1000, 3000]);
		expect(logTicks(2, 3000)).toEqual([10, 100, 1000]);
		expect(logTicks(1, 1e6)).toEqual([1, 100, 1e4, 1e6]);
	});
});
