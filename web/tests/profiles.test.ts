// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { ProfileCell, ProfileParts } from "../src/generated/report";
import { slices } from "../src/lib/branches";
import {
	busyShare,
	frameInCells,
	matching,
	meanShares,
	mostWithin,
	nameOf,
	partOf,
	points,
	shareWithin,
	stepOf,
	treeOf,
	viewOf,
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
		expect([busyShare(0.123), busyShare(0.0012)]).toEqual(["12.3 %", "0.12 %"]);
	});
});

describe("views of kernel and user functions", () => {
	/** main calls read, which enters the kernel twice: by vfs_read, and by a call back to main that calls vfs_read. */
	const mixed: ProfileParts = {
		names: ["fio", "main", "read", "vfs_read"],
		name: [0, 1, 2, 3, 1, 3],
		parent: [-1, 0, 1, 2, 3, 4],
		kernel: [0, 0, 0, 1, 0, 1],
	};
	const profile = (variant: string, shares: number[]) => ({
		run: variant,
		variant,
		baseline: variant === "a",
		sampled: "",
		spent: "",
		remarks: [],
		busy: 100,
		samples: shares.map((share) => 100 * share),
		shares,
	});
	const shares = [0.9, 0.8, 0.7, 0.5, 0.3, 0.2];
	const line = { name: "vfs_read", kernel: true, before: "", after: "", change: "", more: true };
	const cell: ProfileCell = {
		title: "iodepth 4",
		parts: mixed,
		profiles: [
			profile("a", shares),
			profile(
				"b",
				shares.map((share) => share / 2),
			),
		],
		changes: [
			{
				before: 0,
				after: 1,
				changes: shares.map((share) => -share / 2),
				functions: [line, { ...line, name: "main", kernel: false }],
			},
		],
	};

	it("moves functions of one kind up to their nearest caller of that kind, with all shares", () => {
		const kernel = viewOf(cell, "kernel");
		expect(kernel.parts).toMatchObject({ name: [0, 3, 3], parent: [-1, 0, 1], kernel: [0, 1, 1] });
		expect(kernel.profiles[0]?.shares).toEqual([0.9, 0.5, 0.2]);
		expect(kernel.profiles[0]?.samples).toEqual([90, 50, 20]);
		expect(kernel.changes[0]?.changes).toEqual([-0.45, -0.25, -0.1]);
		expect(kernel.changes[0]?.functions.map(({ name }) => name)).toEqual(["vfs_read"]);
		const user = viewOf(cell, "user");
		expect(user.parts).toMatchObject({ name: [0, 1, 2, 1], parent: [-1, 0, 1, 2], kernel: [0, 0, 0, 0] });
		expect(viewOf(cell, "all")).toBe(cell);
	});

	it("makes parts of one name below one caller into one", () => {
		const split: ProfileCell = {
			...cell,
			parts: {
				names: ["fio", "a", "b", "read"],
				name: [0, 1, 3, 2, 3],
				parent: [-1, 0, 1, 0, 3],
				kernel: [0, 0, 1, 0, 1],
			},
			profiles: [profile("a", [0.9, 0.5, 0.4, 0.3, 0.2])],
			changes: [],
		};
		const kernel = viewOf(split, "kernel");
		expect(kernel.parts.name).toEqual([0, 3]);
		expect(kernel.profiles[0]?.shares[1]).toBeCloseTo(0.6);
	});

	it("finds a function in all cells by name and kind, each stack once", () => {
		const other: ProfileCell = {
			...cell,
			title: "iodepth 8",
			parts: { names: ["fio", "vfs_read"], name: [0, 1], parent: [-1, 0], kernel: [0, 0] },
			profiles: [profile("a", [1, 0.4])],
		};
		const all = { cells: [cell, other], notes: [], method: [] };
		expect(frameInCells(all, cell, 3)).toEqual([
			{
				place: 0,
				title: "iodepth 4",
				shares: [
					["a", 0.5],
					["b", 0.25],
				],
			},
			{ place: 1, title: "iodepth 8", shares: [["a", 0]] },
		]);
		expect(frameInCells(all, cell, 0).map((row) => row.shares[0]?.[1])).toEqual([0.9, 1]);
	});
});
