// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { ProfileCell, ProfileParts } from "../src/generated/report";
import { slices } from "../src/lib/branches";
import {
	matching,
	meanShares,
	mostWithin,
	nameOf,
	partOf,
	percent,
	points,
	shareWithin,
	stepOf,
	treeOf,
} from "../src/report/profile-data";

/** fio calls read, which calls copy and read again; kworker calls copy. */
const parts: ProfileParts = {
	names: ["fio", "read", "copy", "kworker"],
	name: [0, 1, 2, 1, 3, 2],
	parent: [-1, 0, 1, 1, -1, 4],
	kernel: [0, 1, 1, 1, 0, 1],
};
const shares = [0.6, 0.5, 0.2, 0.1, 0.3, 0.3];

describe("a tree of parts", () => {
	it("holds each part under its caller, as wide as its share, with what is not drawn left blank", () => {
		const root = treeOf(parts, shares);
		expect(root.total).toBe(1);
		expect(root.children.map((each) => each.name)).toEqual(["fio", "kworker"]);
		const found = slices(root, "", 9).map(({ branch, from, to, depth }) => [
			partOf(branch),
			+from.toFixed(3),
			+to.toFixed(3),
			depth,
		]);
		expect(found).toEqual([
			[-1, 0, 1, 0],
			[0, 0, 0.6, 1],
			[1, 0, 0.5, 2],
			[2, 0, 0.2, 3],
			[3, 0.2, 0.3, 3],
			[4, 0.6, 0.9, 1],
			[5, 0.6, 0.9, 2],
		]);
	});

	it("shows one part alone", () => {
		const found = slices(treeOf(parts, shares), "1", 9);
		expect(found.map((slice) => nameOf(parts, partOf(slice.branch)))).toEqual(["read", "copy", "read"]);
		expect(found[1]?.to).toBeCloseTo(0.4);
	});

	it("shows what is not printable, or turns text around, as its code", () => {
		const hostile = { ...parts, names: ["ba\x1b[2Jd", "re\u202ead", "copy", "kworker"] };
		const found = slices(treeOf(hostile, shares), "", 9).map(({ branch }) => branch.name);
		expect(found.slice(1, 3)).toEqual(["ba\\x1b[2Jd", "re\\u202ead"]);
		expect(nameOf(hostile, 1)).toBe("re\\u202ead");
		expect([...matching(hostile, "\\u202e")]).toEqual([1, 3]);
	});

	it("has no width for a part that a profile lacks", () => {
		expect(slices(treeOf(parts, [1, 0, 0, 0, 0, 0]), "", 9)).toHaveLength(2);
	});
});

describe("finding", () => {
	it("goes by a part of the name, whatever its case", () => {
		expect([...matching(parts, " READ ")]).toEqual([1, 3]);
		expect(matching(parts, "  ").size).toBe(0);
	});

	it("counts a stack once, however often a function stands in it", () => {
		expect(shareWithin(parts, matching(parts, "read"), shares)).toBeCloseTo(0.5);
		expect(shareWithin(parts, matching(parts, "copy"), shares)).toBeCloseTo(0.5);
		expect(shareWithin(parts, matching(parts, "o"), shares)).toBeCloseTo(0.9);
	});
});

describe("a difference", () => {
	it("is as wide as the mean of both shares, so that what is gone is there", () => {
		const profile = {
			run: "",
			variant: "",
			baseline: false,
			sampled: "",
			spent: "",
			remarks: [],
			busy: 10,
			samples: [],
		};
		const cell: ProfileCell = {
			title: "",
			parts,
			profiles: [
				{ ...profile, shares },
				{ ...profile, shares: [0.2, 0, 0, 0, 0.5, 0.5] },
			],
			changes: [],
		};
		const change = { before: 0, after: 1, changes: [], functions: [] };
		expect(meanShares(cell, change).map((each) => +each.toFixed(3))).toEqual([0.4, 0.25, 0.1, 0.05, 0.4, 0.4]);
	});

	it("ends its colours at the largest difference of what is shown", () => {
		const changes = [-0.1, 0.05, -0.08, 0.02, 0.3, 0.3];
		expect([-1, 0, 1, 3, 4].map((part) => mostWithin(parts, part, changes))).toEqual([0.3, 0.1, 0.08, 0.02, 0.3]);
	});

	it("has five steps of colour either way", () => {
		expect([-0.2, -0.11, -0.01, 0, 0.05, 0.2, 0.9].map((each) => stepOf(each, 0.2))).toEqual([-5, -3, 0, 0, 1, 5, 5]);
		expect(stepOf(0, 0)).toBe(0);
	});

	it("is said in points, a share in per cent", () => {
		expect([points(0.0134), points(-0.32), points(0.004)]).toEqual(["+1.3 points", "-32.0 points", "+0.40 points"]);
		expect([percent(0.123), percent(0.0012)]).toEqual(["12.3 %", "0.12 %"]);
	});
});
