// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { graphOf } from "../src/api/worksheet";
import { numberTicks } from "../src/canvas/numbers";
import { PairedSeries, type PairedSeriesLook, pairsOf } from "../src/canvas/paired-series";
import type { Change, Changes, StatisticFacts } from "../src/generated/api";
import { branchOf, devices, trail } from "../src/lib/branches";
import { changeTitle, changeWords } from "../src/worksheet/dialogs/compare";
import { openMenu } from "../src/worksheet/graph/actions";
import { listedIn } from "../src/worksheet/graph/contents";
import { sourcesOf } from "../src/worksheet/graph/drill";
import { differenceOf, stateOf } from "../src/worksheet/graph/state";
import { rate } from "../src/worksheet/graph/values";

const change = (key: string, values: (number | null)[], other_values: (number | null)[]): Change => ({
	...{ key, mean: 3, other_mean: 2, change: 1, ratio: 1.5, values, other_values },
});
const answer: Changes = {
	...{ schema: 1, kind: "changes", statistic: "io.ops[op]", unit: "1/s", interval_ns: 1e9, columns: 4 },
	...{
		from_ns: 100e9,
		until_ns: 104e9,
		other_from_ns: 50e9,
		other_until_ns: 54e9,
		covered_ns: 3e9,
		other_covered_ns: 3e9,
	},
	...{ adds_up: true, left: 0, notes: [] },
	whole: change("", [4, null, 6, 1], [3, 2, null, 9]),
	keys: [change("read", [3, null, 5, 1], [2, 1, null, 9]), change("write", [1, null, 1, 0], [1, 1, null, 0])],
};
const look = (given: Partial<PairedSeriesLook> = {}): PairedSeriesLook => ({
	answer,
	highlights: [],
	mode: "highlight",
	colour: (key) => `#${key}`,
	words: (value) => rate(value, "1/s"),
	ticks: (high, height) => numberTicks(high, "1/s", height),
	all: "io.ops[op]",
	...given,
});

describe("two times beside each other", () => {
	it("are those of all together, of what is chosen, or of each value", () => {
		const names = (given: Partial<PairedSeriesLook>) => pairsOf(look(given)).map((each) => each.name);
		expect(names({})).toEqual(["io.ops[op]"]);
		expect(names({ highlights: ["write"] })).toEqual(["write"]);
		expect(names({ highlights: ["gone"] })).toEqual(["io.ops[op]"]);
		expect(names({ mode: "rainbow" })).toEqual(["read", "write"]);
		expect(pairsOf(look({ highlights: ["write"] }))[0]).toMatchObject({
			values: [1, null, 1, 0],
			before: [1, 1, null, 0],
		});
	});

	it("share an axis that holds both, and are hatched where one was not recorded", () => {
		const made = new PairedSeries(look());
		expect([made.origin, made.interval, made.columns, made.compared]).toEqual([100e9, 1e9, 4, true]);
		expect(made.hatched).toEqual([[1e9, 3e9]]);
		expect(made.settle({ from: 0, to: 4e9 })).toBe(true);
		expect(made.settle({ from: 0, to: 4e9 })).toBe(false);
		expect(made.axis.high).toBe(10);
		const labels = (height: number) => made.ticks(height).map((each) => each.label);
		expect(labels(200)).toEqual(["0", "2/s", "4/s", "6/s", "8/s", "10/s"]);
		expect(labels(1700)).toHaveLength(11);
	});

	it("say both, also where one of them is not known", () => {
		const made = new PairedSeries(look());
		expect(made.at(0.5e9, 0)).toEqual({ "this time": "4/s", "that time": "3/s" });
		expect(made.at(1.5e9, 0)).toEqual({ "this time": "nothing recorded", "that time": "2/s" });
		expect(made.at(9e9, 0)).toBe(null);
		const many = new PairedSeries(look({ mode: "rainbow" }));
		expect(many.at(3.5e9, 0)).toEqual({ read: "1/s, that time 9/s", write: "0/s, that time 0/s" });
	});

	it("have no rows, of which a menu could tell", () => {
		const spec = { ...graphOf("io.ops[op]", "beside"), highlights: ["read"] };
		const content = new PairedSeries(look({ highlights: ["read"] }));
		const box = { left: 0, top: 0, width: 100, height: 100 };
		const drawn = { box, span: { from: 0, to: 4e9 }, zoom: 1, content, spec, marks: differenceOf(spec.id) };
		openMenu({ ...drawn, draw: () => {} }, [10, 50], 10, 50);
		expect(stateOf(spec.id).menu.value).toBe(null);
	});

	it("are told by how much they changed", () => {
		const words = (mean: number | null, other_mean: number | null) =>
			changeWords({
				...{ mean, other_mean },
				change: mean === null || other_mean === null ? null : mean - other_mean,
				ratio: mean === null || !other_mean ? null : mean / other_mean,
			});
		expect(words(3, 2)).toBe("▲ 50 %");
		expect(words(1, 2)).toBe("▼ 50 %");
		expect(words(40, 2)).toBe("▲ × 20");
		expect([words(0, 2), words(2, 0), words(0, 0), words(2, 2), words(null, 2)]).toEqual([
			...["gone", "new", "same", "same", "not known"],
		]);
		expect(changeTitle(change("read", [], []), "1/s")).toBe("now 3/s, then 2/s: +1/s");
	});
});

describe("a tree of which a part is shown", () => {
	const node = (name: string, ...children: object[]) => ({
		...{ name, total: 1, own: 0, others: 0, left: 0 },
		children,
	});
	const root = branchOf(node("", node("data", node("table", node("0")), node("dump"))) as never, "");

	it("says the way to it", () => {
		expect(trail(root, "/data/table").map((each) => each.name)).toEqual(["", "data", "table"]);
		expect(trail(root, "").map((each) => each.name)).toEqual([""]);
		expect(trail(root, "/gone").map((each) => each.name)).toEqual([""]);
		const vdevs = branchOf(node("", { ...node("tank", { ...node("mirror-0"), own: 1 }) }) as never, "", "");
		expect(vdevs.names).toEqual(["tank/mirror-0"]);
	});

	it("takes the sum of all from the service where devices are made of others", () => {
		const values = ["md0", "sda", "sda1", "sdb"].map((key) => ({ key, total: 10 }));
		expect(devices(values).total).toBe(30);
		expect(devices(values, 20).total).toBe(20);
		expect(devices(values, 20).children.map((each) => each.children.length)).toEqual([0, 1, 0]);
	});
});

describe("whose numbers", () => {
	const entry = {
		...{ name: "io.ops", breakdowns: [] },
		sources: [
			{ name: "block", counted: false, fields: ["op", "device", "latency"] },
			{ name: "diskstats", counted: true, fields: ["op", "device"] },
		],
	} as unknown as StatisticFacts;
	const names = (statistic: string) => sourcesOf(statistic, [entry]).map((each) => each.name);

	it("can be chosen among those that tell all that is asked", () => {
		expect(names("io.ops")).toEqual(["block", "diskstats"]);
		expect(names('io.ops[op=read][device!="a[latency]"]')).toEqual(["block", "diskstats"]);
		expect(names("io.ops[latency]")).toEqual(["block"]);
		expect(names("io.ops[latency>=1ms][op]")).toEqual(["block"]);
		expect(names("net.bytes")).toEqual([]);
	});
});

describe("a list", () => {
	it("stands for all values that it names and sums up", () => {
		const item = (key: string, single = true) => ({ key, words: "", value: 1, colour: "", single });
		expect(listedIn([item("a"), item("b"), item("12 others", false)])).toBe(14);
		expect(listedIn([item("a"), item("3 others on average", false)])).toBe(4);
		expect(listedIn([])).toBe(0);
	});
});
