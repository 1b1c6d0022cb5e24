// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EMPTY, graphOf, SECOND, sheet, tick } from "../src/api/worksheet";
import type { Look, Part } from "../src/canvas/heat";
import { grouped } from "../src/canvas/ticks";
import type { Node, StatisticFacts } from "../src/generated/api";
import type { SparseCounts } from "../src/generated/maps";
import { branchOf, devices, slices } from "../src/lib/branches";
import { chosen, layerKeys } from "../src/worksheet/graph/contents";
import { bounds, fieldsOf, rangeSteps, sheetOfHost, steps } from "../src/worksheet/graph/drill";
import { graphKeys } from "../src/worksheet/graph/keys";
import { cutOf, Foot, held, togetherOf } from "../src/worksheet/graph/list";
import { boundWords, rangeWords, rowsOf, secondsOf } from "../src/worksheet/graph/rows";
import { amount, chosenSum, rate, rowWords } from "../src/worksheet/graph/values";
import { narrow } from "../src/worksheet/graph/who";
import { fitting, keyed, wrapped } from "../src/worksheet/pages/export";

const entry = (name: string, stacks: string[], maps: string[]): StatisticFacts => ({
	name,
	about: "",
	covers: "",
	unit: "1/s",
	source: "block",
	sources: [],
	counted: false,
	filters: [],
	breakdowns: [
		...stacks.map((field) => ({ field, kind: "stack" as const })),
		...maps.map((field) => ({ field, kind: "heat" as const })),
	],
	available: true,
	why_not: "",
	lacking: [],
});
const catalogue = [entry("io.ops", ["op", "device", "process", "file"], ["latency", "size"])];

describe("drill-down", () => {
	it("goes from a value to what tells its I/Os further", () => {
		const found = steps("io.ops[op]", "op", "write", catalogue);
		expect(found.map((step) => step.words)).toEqual([
			"by device",
			"by process",
			"by file",
			"by latency",
			"by size",
			"as one number",
		]);
		expect(found[1]?.statistic).toBe("io.ops[op=write][process]");
		expect(found.map((step) => step.kind)).toEqual(["stack", "stack", "stack", "heat", "heat", "series"]);
	});

	it("keeps a map's values first, and its filters", () => {
		const found = steps("io.ops[op=write][latency]", "process", 'a"]b', catalogue);
		expect(found[0]).toEqual({
			words: "by latency",
			statistic: 'io.ops[op=write][process="a\\"]b"][latency]',
			kind: "heat",
		});
		expect(found.map((step) => step.words)).not.toContain("by op");
		expect(found.map((step) => step.words)).not.toContain("by process");
	});

	it("narrows to a range of values", () => {
		const found = rangeSteps("io.ops[op=read][latency]", { field: "latency", low: 1e6, high: 2e6 }, "ns", catalogue);
		expect(found[0]?.statistic).toBe("io.ops[op=read][latency=1000000ns..2000000ns][latency]");
		expect(bounds({ low: -0.5, high: 4096.4 }, "B")).toBe("0B..4096B");
	});

	it("leaves hosts out of the worksheet of one host", () => {
		const graphs = ["io.ops", "io.ops[host]", 'io.ops[host="a]b"][op=read][latency]', "io.ops[op]"];
		const whole = { ...EMPTY, name: "mine", recording: "all", graphs: graphs.map((each) => graphOf(each, "")) };
		const own = sheetOfHost(whole, "db1");
		expect([own.name, own.recording]).toEqual(["", "db1"]);
		expect(own.graphs.map((each) => each.statistic)).toEqual(["io.ops", "io.ops[op=read][latency]", "io.ops[op]"]);
	});

	it("never asks again for what is one value already, whatever is in a name", () => {
		expect(fieldsOf("io.ops[op=write][latency]", catalogue)).toEqual(["device", "process", "file"]);
		expect(fieldsOf('io.ops[file="[op=read]"][latency]', catalogue)).toEqual(["op", "device", "process"]);
		expect(fieldsOf("io.ops[latency=1ms..2ms][size]", catalogue)).toEqual(["op", "device", "process", "file"]);
		expect(fieldsOf("no.such[latency]", catalogue)).toEqual([]);
	});

	it("of a marked part holds its values too; sizes are ranges", () => {
		const spec = { statistic: "io.ops[op=read][latency]" };
		const mark = { low: 1e6, high: 2e6 };
		const first = "io.ops[op=read][latency=1000000ns..2000000ns]";
		expect(narrow(spec, "process", "dd", mark, "ns")).toBe(`${first}[process=dd][latency]`);
		expect(narrow(spec, "size", "4KiB..8KiB", mark, "ns")).toBe(`${first}[size=4KiB..8KiB][latency]`);
	});
});

const cells = (counts: number[]): SparseCounts => ({
	starts: Array.from({ length: counts.length + 1 }, (_, i) => i),
	rows: counts.map(() => 0),
	counts,
});
const part = (key: string, counts: number[]): Part => ({ key, colour: "#000000", cells: cells(counts) });

describe("modes of a map", () => {
	const all = cells([9]);
	const told = [part("a", [4]), part("b", [3]), part("", [2])];
	const wanted =
		(...keys: string[]) =>
		(each: Part) =>
			keys.includes(each.key);
	const sum = (shown: readonly SparseCounts[]) => shown.reduce((total, each) => total + (each.counts[0] ?? 0), 0);

	it("show all in grey but what is highlighted", () => {
		expect(chosen("highlight", all, told, wanted("a"))).toEqual({ shown: [all], hued: [told[0]] });
		expect(chosen("rainbow", all, told, wanted("a", "b")).hued).toHaveLength(2);
		expect(chosen("highlight", all, told, wanted())).toEqual({ shown: [all], hued: [] });
	});

	it("show some alone, or all others: together that is all", () => {
		for (const keys of [["a"], ["a", "b"], ["b"]]) {
			const alone = chosen("isolate", all, told, wanted(...keys));
			const without = chosen("exclude", all, told, wanted(...keys));
			expect(sum(alone.shown) + sum(without.shown)).toBe(9);
		}
	});

	it("ask for the maps of few keys", () => {
		const spec = { ...graphOf("io.ops[latency]", "g"), by: "process", highlights: ["z"] };
		const items = "abcdefghij".split("").map((key) => ({ key, words: "", value: 1, colour: "", single: key !== "a" }));
		expect(layerKeys(spec, items)).toEqual(["z"]);
		expect(layerKeys({ ...spec, by: "" }, items)).toEqual([]);
		const rainbow = layerKeys({ ...spec, mode: "rainbow" }, items);
		expect(rainbow.slice(0, 3)).toEqual(["z", "b", "c"]);
		expect(rainbow.length).toBeLessThanOrEqual(12);
	});
});

describe("the left panel", () => {
	const look = (counts: SparseCounts): Look => ({
		blank: [],
		window: null,
		about: "",
		group: {
			y: "latency",
			title: "",
			unit: "ns",
			weight: "count",
			interval_ns: 10,
			columns: counts.starts.length - 1,
			bounds: Array.from({ length: 65 }, (_, i) => i),
			y_scale: "linear",
			color: "rank",
			low: 0,
			high: 64,
			least: 1,
			crops: [[0, 64]],
			lines: [],
			show_lines: false,
			difference: false,
			maps: [],
		},
		map: {} as never,
		origin: 100,
		shown: [counts],
		parts: [],
		kind: "rank",
		scale: "",
		crop: 0,
		rows: null,
		overlays: false,
		words: () => ({}),
		row: () => ({}),
	});
	const columns = fc.array(fc.tuple(fc.integer({ min: 0, max: 63 }), fc.integer({ min: 1, max: 50 })), {
		minLength: 1,
		maxLength: 30,
	});

	it("adds up a map's values in ranges that hold each of them once", () => {
		fc.assert(
			fc.property(columns, (made) => {
				const data: SparseCounts = {
					starts: Array.from({ length: made.length + 1 }, (_, i) => i),
					rows: made.map(([bucket]) => bucket),
					counts: made.map(([, count]) => count),
				};
				const whole = rowsOf(look(data), { from: 100, until: 100 + 10 * made.length });
				const total = made.reduce((sum, [, count]) => sum + count, 0);
				expect(whole.reduce((sum, row) => sum + row.count, 0)).toBe(total);
				expect(whole.length).toBeLessThanOrEqual(18);
				for (let i = 1; i < whole.length; i++) expect(whole[i]?.high).toBe(whole[i - 1]?.low);
				const [first] = made;
				const one = rowsOf(look(data), { from: 100, until: 110 });
				expect(one.map((row) => row.count)).toEqual([first?.[1]]);
				expect(one[0]?.low).toBeLessThanOrEqual(first?.[0] ?? 0);
				expect(one[0]?.high).toBeGreaterThan(first?.[0] ?? 0);
			}),
		);
		expect(rowsOf(look(cells([1])), { from: 900, until: 950 })).toEqual([]);
	});

	it("tells round times of a logarithmic axis apart, and octaves of bytes", () => {
		const made = look(cells(Array.from({ length: 64 }, () => 1)));
		const data = { ...cells(Array.from({ length: 64 }, () => 1)), rows: Array.from({ length: 64 }, (_, i) => i) };
		const edges = (unit: "ns" | "B") =>
			rowsOf({ ...made, group: { ...made.group, unit }, scale: "log", shown: [data] }, { from: 100, until: 740 }).map(
				({ low, high }) => [low, high],
			);
		expect(edges("ns")).toEqual([50, 20, 10, 5, 2, 1].map((low, i, all) => [low, all[i - 1] ?? 64]));
		expect(edges("B")).toEqual([32, 16, 8, 4, 2, 1].map((low) => [low, 2 * low]));
	});

	it("names a bound by the mark of the axis that it lies on, another by three digits", () => {
		expect(boundWords(19_968, "ns")).toBe("20 µs");
		expect(boundWords(998_000, "ns")).toBe("1 ms");
		expect(boundWords(178_257_920, "ns")).toBe("178 ms");
		expect(boundWords(0, "ns")).toBe("0 ns");
	});

	it("cuts long names in the middle, paths before their last part", () => {
		expect(["/srv/db/table.ibd", "short", "kworker/1:0", "postgres: checkpointer"].map(cutOf)).toEqual([7, 0, 0, 15]);
	});

	it("says what the chosen ones hold together: in all, a second of what was recorded, and of all", () => {
		const long = look(cells(Array.from({ length: 10 }, () => 1)));
		const ten = { ...long, origin: 0, group: { ...long.group, columns: 10, interval_ns: SECOND } };
		const span = (from: number, until: number) => ({ from: from * SECOND, until: until * SECOND });
		// before and after its I/Os, what was recorded counts, and what was not doesn't
		const outside = [
			{ from: Number.NEGATIVE_INFINITY, until: -3 * SECOND },
			{ from: 14 * SECOND, until: Number.POSITIVE_INFINITY },
		];
		expect(secondsOf(ten, span(-5, 20), outside)).toBe(17);
		expect(secondsOf({ ...ten, window: [-3, 12] }, span(-5, 20), outside)).toBe(15);
		expect(secondsOf({ ...ten, window: [-3, 12] }, span(-2, -1), outside)).toBe(1);
		// the last two are not answered, the first two were not recorded, and one of the rest is a gap
		const cut = { ...ten, window: [0, 8] as [number, number], blank: [[5, 6]] as [number, number][] };
		expect(secondsOf(cut, span(0, 10), [{ from: Number.NEGATIVE_INFINITY, until: 2 * SECOND }])).toBe(5);
		expect(secondsOf(cut, span(3, 4), [])).toBe(1);
		const rows = [{ count: 300 }, { count: 100 }, { count: 100 }];
		expect(chosenSum(rows.slice(1), rows, 10, { y: "latency" })).toBe("200 I/Os, 20/s, 40 % of all");
		expect(chosenSum(rows.slice(1), rows, 10, { y: "size", weight: "bytes" })).toBe("200 B, 20 B/s, 40 % of all");
		expect(chosenSum(rows.slice(1), rows, 10, { y: "utilization" })).toBe("200 readings, 40 % of all");
		expect(chosenSum(rows.slice(1), rows, 0, { y: "latency" })).toBe("200 I/Os, 40 % of all");
	});

	it("adds up values that are chosen, where all are known", () => {
		const item = (key: string, value: number | null, single = true) => ({ key, words: "", value, colour: "", single });
		const items = [item("a", 60), item("b", 20), item("9 others", 20, false)];
		expect(togetherOf(items, ["a", "b"])).toEqual({ sum: 80, share: 0.8 });
		expect(togetherOf(items, ["a"])).toEqual({ sum: 60, share: 0.6 });
		expect(togetherOf(items, [])).toBeNull();
		expect(togetherOf(items, ["a", "gone"])).toBeNull();
		expect(togetherOf([...items, item("c", null)], ["a"])).toBeNull();
	});

	it("reads out what is chosen together, but not each second", () => {
		const live = () => (Foot({ words: "80/s" }).props as { "aria-live": string })["aria-live"];
		sheet.value = EMPTY;
		tick.value = { live: true } as typeof tick.value;
		expect(live()).toBe("off");
		sheet.value = { ...EMPTY, time: { from: 0, until: SECOND } };
		expect(live()).toBe("polite");
		[sheet.value, tick.value] = [EMPTY, null];
	});

	it("keeps its order under the pointer, new values last", () => {
		const item = (key: string, value: number) => ({ key, words: "", value, colour: "", single: true });
		const order = held([item("a", 1), item("new", 9), item("b", 5)], ["b", "gone", "a"]);
		expect(order.map((each) => each.key)).toEqual(["b", "a", "new"]);
	});
});

describe("values", () => {
	it("have their unit", () => {
		expect(rate(2048, "B/s")).toBe("2 KiB/s");
		expect(rate(12.5, "1/s")).toBe("12.5/s");
		expect(rate(0.254, "1")).toBe("25.4 %");
		expect(rate(2048, "B")).toBe("2 KiB");
		expect(rate(null, "1/s")).toBe("nothing recorded");
		expect(amount(12345, "1/s")).toBe("12 345");
		expect(amount(0, "1")).toBe("");
		expect(rowWords(98, 101, "", "utilization")).toBe("98 to 100 %");
		expect(rowWords(1e6, 2e6, "ns", "latency")).toBe("1 ms to 2 ms");
		expect(rangeWords({ low: 1e6, high: 2e6 }, "ns")).toBe("1 ms – 2 ms");
		expect(rangeWords({ low: 7 * 2 ** 30, high: 7.5 * 2 ** 30 }, "B")).toBe("7 – 7.5 GiB");
		expect(rangeWords({ low: 2 ** 29, high: 2 ** 30 }, "B")).toBe("512 MiB – 1 GiB");
	});
});

describe("a picture", () => {
	it("names what is told apart by colour, in the room there is", () => {
		const item = (key: string, colour: string) => ({ key, words: "", value: 1, colour, single: true });
		const items = [item("a", "#111111"), item("b", ""), item("3 others", "#999999")];
		expect(keyed(items).map((each) => each.key)).toEqual(["a", "3 others"]);
		expect(keyed(items.slice(0, 2))).toEqual([]);
		const measure = (text: string) => text.length;
		expect(wrapped("18 I/Os above 9.7 ms · hatched", 12, measure)).toEqual(["18 I/Os", "above 9.7 ms", "· hatched"]);
		expect([wrapped("", 5, measure), wrapped("longer than", 3, measure)]).toEqual([[], ["longer", "than"]]);
		expect(fitting("/srv/data", 9, measure)).toBe("/srv/data");
		expect(fitting("/srv/data", 6, measure)).toBe("…/data");
		expect(fitting("/srv/data", 0, measure)).toBe("…");
	});
});

describe("hierarchies", () => {
	const node = (name: string, total: number, own: number, children: Node[] = []): Node => ({
		name,
		total,
		own,
		others: 0,
		left: 0,
		children,
	});
	const root = node("", 10, 0, [node("a", 7, 1, [node("x", 4, 4), node("y", 2, 2)]), node("b", 3, 3)]);

	it("name whole paths, of a directory all that lie under it", () => {
		const branch = branchOf(root, "");
		expect(branch.names).toEqual(["/a", "/a/x", "/a/y", "/b"]);
		expect(branch.children[0]?.names).toEqual(["/a", "/a/x", "/a/y"]);
	});

	it("are icicles in which no slice is wider than what it lies under", () => {
		const found = slices(branchOf(root, ""), "", 8);
		expect(found.map((slice) => [slice.branch.path, slice.depth])).toEqual([
			["", 0],
			["/a", 1],
			["/a/x", 2],
			["/a/y", 2],
			["/b", 1],
		]);
		const [all, a, x] = found;
		expect([all?.from, all?.to]).toEqual([0, 1]);
		expect(a?.to).toBeCloseTo(0.7, 9);
		expect(x?.to).toBeCloseTo(0.4, 9);
		expect(slices(branchOf(root, ""), "/a", 2).map((slice) => slice.branch.path)).toEqual(["/a", "/a/x", "/a/y"]);
		expect(slices(branchOf(root, ""), "/gone", 1)).toHaveLength(1);
	});

	it("of devices hold partitions below their disk, and nothing else", () => {
		const keys = ["sda", "sda1", "sdaa", "nvme0n1", "nvme0n1p2", "loop1", "loop10"];
		const found = devices(keys.map((key) => ({ key, total: 1 })));
		expect(found.children.map((each) => [each.name, each.children.map((child) => child.name)])).toEqual([
			["sda", ["sda1"]],
			["sdaa", []],
			["nvme0n1", ["nvme0n1p2"]],
			["loop1", []],
			["loop10", []],
		]);
		expect(found.total).toBe(5);
	});
});

describe("keys", () => {
	it("are each there once, with words", () => {
		expect(new Set(graphKeys.map((each) => each.key)).size).toBe(graphKeys.length);
		for (const each of graphKeys) expect(each.words.length).toBeGreaterThan(5);
	});
});

describe("rates", () => {
	it("of five digits and more are written in groups of three", () => {
		expect(["10000", "9999", "1234567.5", "10000 KiB"].map((number) => grouped(number))).toEqual([
			"10 000",
			"9999",
			"1 234 567.5",
			"10 000 KiB",
		]);
		expect(rate(53_376, "1/s")).toBe("53 376/s");
	});
});
