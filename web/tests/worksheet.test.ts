// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import vectors from "../../tests/vectors/names.json";
import { FEW, filledInterval, MANY } from "../src/api/columns";
import {
	add,
	close,
	EMPTY,
	edit,
	focus,
	type GraphSpec,
	graphOf,
	MOST,
	refused,
	setSpan,
	sheet,
	spanOf,
	whole,
} from "../src/api/worksheet";
import type { StatisticFacts } from "../src/generated/api";
import { breakdownOf, brokenDown, filtered, rootOf, visible } from "../src/lib/names";
import { titleOf } from "../src/lib/titles";
import { place, resize, shift } from "../src/worksheet/arrangement";
import { choicesOf, search, suggestions } from "../src/worksheet/choices";
import { readGraph, readWorksheet, unselected } from "../src/worksheet/document-reader";
import { dragged, resized } from "../src/worksheet/pages/overview";
import { pathOf, type Strip, stripLabel, stripWords } from "../src/worksheet/pages/strip-chart";
import { compare, move, moveCompared } from "../src/worksheet/time-navigation";
import { formatPlace, parsePlace, parseSelected } from "../src/worksheet/worksheet-url";

const spans = fc
	.tuple(fc.integer({ min: -(2 ** 40), max: 2 ** 52 }), fc.integer({ min: 1, max: 2 ** 40 }))
	.map(([from, length]) => ({ from, until: from + length }));
const names = fc.string({ minLength: 1, maxLength: 40 });
const graphs: fc.Arbitrary<GraphSpec> = fc.record({
	id: fc.constant("g1"),
	statistic: names.filter((each) => !each.startsWith("{")),
	source: fc.string({ maxLength: 20 }),
	painter: fc.constantFrom("", "line", "stack", "heat"),
	scale: fc.constantFrom("", "log", "linear"),
	by: fc.string({ maxLength: 20 }),
	highlights: fc.array(names, { maxLength: 4 }),
	mode: fc.constantFrom("highlight", "isolate", "exclude", "rainbow"),
	colour: fc.constantFrom("rank", "log", "linear"),
	crop: fc.constantFrom(0, 0.0001, 0.001, 0.01, 0.05),
	rows: fc.option(fc.constant({ low: 10, high: 2000.5 })),
	overlays: fc.boolean(),
	panel: fc.constantFrom("average", "second"),
	hierarchy: fc.constantFrom("", "tree", "icicle"),
	width: fc.constantFrom(1, 2),
	height: fc.integer({ min: 80, max: 1600 }),
	synced: fc.boolean(),
	span: fc.option(spans),
});
const sheets = fc.record({
	schema: fc.constant(1 as const),
	name: fc.string({ maxLength: 64 }),
	recording: fc.string({ maxLength: 60 }),
	time: fc.oneof(spans, fc.record({ live: fc.integer({ min: 1, max: 1e6 }) })),
	compare: fc.option(spans),
	colours: fc.dictionary(
		names.map((name) => `device=${name}`),
		fc.integer({ min: 0, max: 11 }),
		{ maxKeys: 5, noNullPrototype: true },
	),
	graphs: fc.array(graphs, { maxLength: MOST }).map((found) => found.map((each, i) => ({ ...each, id: `g${i + 1}` }))),
});

beforeEach(() => {
	sheet.value = EMPTY;
	focus.value = "";
	refused.value = "";
});

describe("a worksheet", () => {
	it("comes back from its address as it was", () => {
		fc.assert(
			fc.property(sheets, (given) => {
				expect(parsePlace(`#${formatPlace(given)}`)).toEqual(given);
			}),
		);
	});
	it("comes back through a browser's own reading of the address", () => {
		fc.assert(
			fc.property(sheets, (given) => {
				const url = new URL("http://127.0.0.1/");
				url.hash = formatPlace(given);
				expect(parsePlace(url.hash)).toEqual(given);
			}),
		);
	});
	it("has the selected second in its address", () => {
		fc.assert(
			fc.property(sheets, fc.option(spans), (given, selected) => {
				const text = `#${formatPlace(given, selected)}`;
				expect([parsePlace(text), parseSelected(text)]).toEqual([given, selected]);
			}),
		);
		for (const damaged of ["#at=5", "#at=9..5", "#at=a..b", "#at=..", "", "#at=1..2..x"])
			expect(parseSelected(damaged)).toBeNull();
	});
	it("is saved with averages, since a saved one has no selected second", () => {
		const given = { ...EMPTY, graphs: [{ ...graphOf("io.ops", "g1"), panel: "second" as const }] };
		expect(unselected(given)).toEqual({ ...EMPTY, graphs: [graphOf("io.ops", "g1")] });
	});
	it("is read from anything, and is one afterwards", () => {
		fc.assert(
			fc.property(fc.anything(), fc.array(fc.object({ maxDepth: 2 })), (given, found) => {
				for (const each of [
					given,
					{ graphs: found },
					{ graphs: found.map((one) => ({ statistic: "io.ops", ...one })) },
				]) {
					const read = readWorksheet(each);
					expect(read.schema).toBe(1);
					expect(new Set(read.graphs.map(({ id }) => id)).size).toBe(read.graphs.length);
					expect(readWorksheet(JSON.parse(JSON.stringify(read)))).toEqual(read);
				}
			}),
		);
	});
	it("leaves out what is damaged, and keeps the rest", () => {
		const read = readWorksheet({
			recording: "rec",
			time: { from: 5, until: 3 },
			graphs: [
				{ statistic: "io.ops", crop: 7, height: 1e9, rows: { low: 3, high: 1 }, by: 5 },
				{ id: "g9" },
				null,
				"io.bytes",
			],
		});
		expect(read).toEqual({ ...EMPTY, recording: "rec", graphs: [{ ...graphOf("io.ops", "g1"), height: 1600 }] });
		expect(readGraph({ statistic: "" })).toBeNull();
		expect(parsePlace("#graph={broken&graph=io.ops&last=x")).toEqual({ ...EMPTY, graphs: [graphOf("io.ops", "g1")] });
	});
	it("is short where graphs are as they begin", () => {
		sheet.value = { ...EMPTY, recording: "rec" };
		add("io.ops[latency]");
		expect(formatPlace(sheet.value)).toBe("recording=rec&last=60&graph=io.ops[latency]");
	});
});

describe("graphs", () => {
	it("are added at the end or behind another one, as many as a stream follows", () => {
		const first = add("io.ops");
		add("io.bytes");
		add("io.ops[op]", first);
		expect(sheet.value.graphs.map((each) => each.statistic)).toEqual(["io.ops", "io.ops[op]", "io.bytes"]);
		for (let more = 3; more < MOST; more++) expect(add("io.ops")).not.toBe("");
		expect(add("io.ops")).toBe("");
		expect(refused.value).toContain("close one");
		expect(new Set(sheet.value.graphs.map((each) => each.id)).size).toBe(MOST);
	});
	it("are closed, moved and resized", () => {
		const [a, b, c] = ["io.ops", "io.bytes", "cpu.utilization"].map((each) => add(each));
		place(c as string, 0);
		expect(sheet.value.graphs.map((each) => each.id)).toEqual([c, a, b]);
		shift(sheet.value.graphs[0] as GraphSpec, 1);
		shift(sheet.value.graphs[2] as GraphSpec, 5);
		expect(sheet.value.graphs.map((each) => each.id)).toEqual([a, c, b]);
		focus.value = c as string;
		close(c as string);
		expect(focus.value).toBe(b);
		resize(sheet.value.graphs[0] as GraphSpec, -5);
		expect(sheet.value.graphs[0]?.height).toBe(80);
	});
	it("share the worksheet's time, or have their own", () => {
		const [a, b] = [add("io.ops"), add("io.bytes")];
		const spec = (id: string) => sheet.value.graphs.find((each) => each.id === id) as GraphSpec;
		setSpan(spec(a), { from: 10, until: 20 });
		expect(spanOf(spec(b))).toEqual({ from: 10, until: 20 });
		edit(b, { synced: false, span: { from: 1, until: 2 } });
		setSpan(spec(b), { from: 3, until: 4 });
		expect([spanOf(spec(a)), spanOf(spec(b))]).toEqual([
			{ from: 10, until: 20 },
			{ from: 3, until: 4 },
		]);
	});
});

describe("a drag over the strip", () => {
	const all = { from: 0, until: 1000 };
	it("moves the part that is shown, no farther than there is anything", () => {
		const shown = { from: 100, until: 300 };
		expect(dragged(shown, all, 200, 250)).toEqual({ from: 150, until: 350 });
		expect(dragged(shown, all, 200, 5000)?.until).toBeLessThanOrEqual(1100);
	});
	it("chooses another part beside it, and where all is shown but what came since", () => {
		expect(dragged({ from: 100, until: 300 }, all, 700, 500)).toEqual({ from: 500, until: 700 });
		expect(dragged({ from: 0, until: 990 }, all, 300, 600)).toEqual({ from: 300, until: 600 });
		expect(dragged({ from: -50, until: 1200 }, all, 300, 2000)).toEqual({ from: 300, until: 1000 });
		expect(dragged(all, all, 300, 301)).toBeNull();
	});
	it("moves one end, within the recorded time and never past the other end", () => {
		const shown = { from: 100, until: 300 };
		expect(resized(shown, all, "from", 250)).toEqual({ from: 250, until: 300 });
		expect(resized(shown, all, "from", 900)).toEqual({ from: 298, until: 300 });
		expect(resized(shown, all, "until", 5000)).toEqual({ from: 100, until: 1000 });
		expect(resized(shown, all, "until", 0)).toEqual({ from: 100, until: 102 });
	});
});

describe("the strip of the whole recording", () => {
	it("is as high as its largest column, and blank where nothing was recorded", () => {
		const lane = (values: (number | null)[]) => ({
			columns: { t0_ns: 1000, interval_ns: 100, values, complete: [0, 4] as const },
			scale: "linear" as const,
		});
		const answer = lane([10, null, 20, 0]);
		const span = { from: 1000, until: 1400 };
		expect(pathOf(answer, span)).toBe("M0.0 100V52.5H250.0V100ZM500.0 100V5.0H750.0V100ZM750.0 100V100.0H1000.0V100Z");
		expect(pathOf(answer, { from: 1050, until: 1250 })).toContain("M0.0 100V52.5H250.0");
		expect(pathOf(lane([0, null]), span)).toBe("");
		expect(pathOf(lane([]), span)).toBe("");
	});
	it("shows a column that is much smaller than the largest", () => {
		const columns = { t0_ns: 0, interval_ns: 1, values: [1e6, 1], complete: [0, 2] as const };
		expect(pathOf({ columns, scale: "linear" }, { from: 0, until: 2 })).toContain("V98.0");
	});
	it("has latencies on a logarithmic scale of a decade at least, so that one stall hides no others", () => {
		const tops = (values: number[]) => {
			const columns = { t0_ns: 0, interval_ns: 1, values, complete: [0, values.length] as [number, number] };
			const path = pathOf({ columns, scale: "log" }, { from: 0, until: values.length });
			return [...path.matchAll(/V([\d.]+)H/g)].map((match) => Number(match[1]));
		};
		expect(tops([200, 2000, 20e6])).toEqual([94.6, 76.7, 5]);
		expect(tops([900, 1000])).toEqual([8.3, 5]);
		expect(tops([0, 1000])).toEqual([100, 5]);
	});
	it("is no higher for a column that is not complete, which is a path of its own", () => {
		const columns = { t0_ns: 0, interval_ns: 100, values: [10, 20, 900], complete: [0, 2] as const };
		const answer = { columns, scale: "linear" as const };
		const all = { from: 0, until: 210 };
		expect(pathOf(answer, all)).toBe("M0.0 100V52.5H476.2V100ZM476.2 100V5.0H952.4V100Z");
		expect(pathOf(answer, all, false)).toBe("M952.4 100V0.0H1000.0V100Z");
	});
	it("has columns by pixels, and by I/Os where they are shorter than a second", () => {
		expect(filledInterval(7e9 / 700, FEW, 10_000)).toBe(10e6);
		expect(filledInterval(7e9 / 700, FEW, 100)).toBe(200e6);
		expect(filledInterval(7e9 / 700, MANY, 100)).toBe(1e9);
		expect(filledInterval(7e9 / 700, FEW, null)).toBe(1e9);
		expect(filledInterval(7200e9 / 700, FEW, 1e6)).toBe(15e9);
	});
	it("says rate, p99 and losses of a moment, and the largest of each", () => {
		const lane = (name: string, values: (number | null)[]) => ({
			name,
			columns: { t0_ns: 1000, interval_ns: 100, values, complete: [0, 3] as const },
			colour: "",
			scale: "linear" as const,
			words: (value: number) => `${value}!`,
		});
		const strip: Strip = { lanes: [lane("IOPS", [5, 0, null]), lane("p99", [70, null, null])], lost: [[1, 17]] };
		const all = { from: 1000, until: 1300 };
		expect(stripWords(strip, 1050, all)).toMatchObject({ IOPS: "5!", p99: "70!" });
		expect(stripWords(strip, 1150, all)).toMatchObject({ IOPS: "0!", lost: "17" });
		expect(Object.keys(stripWords(strip, 1250, all))).toEqual(["time"]);
		expect(stripLabel(strip)).toBe("IOPS at most 5!, p99 at most 70!, records lost at 1 moment");
	});
});

describe("the time that is compared with", () => {
	it("is held while it is compared, and followed again afterwards, unless it was moved", () => {
		sheet.value = { ...EMPTY, time: { live: 30 } };
		compare();
		expect(sheet.value.time).not.toHaveProperty("live");
		moveCompared(-0.5);
		compare();
		expect(sheet.value).toMatchObject({ time: { live: 30 }, compare: null });
		compare();
		move(-0.5);
		compare();
		expect(sheet.value.time).not.toHaveProperty("live");
	});
	it("is whole, as it is saved, wherever it is moved", () => {
		sheet.value = { ...EMPTY, time: { from: 0, until: 1001 } };
		compare();
		moveCompared(0.3);
		const { compare: other } = sheet.value;
		expect([Number.isInteger(other?.from), Number.isInteger(other?.until)]).toEqual([true, true]);
		expect(other?.from).not.toBe(-1001);
		compare();
		expect(sheet.value.compare).toBeNull();
	});
	it("is the first half of what is shown where nothing was recorded before it", () => {
		sheet.value = { ...EMPTY, time: { ...whole.value } };
		const { from, until } = whole.value;
		compare();
		expect(sheet.value.time).toEqual({ from: (from + until) / 2, until });
		expect(sheet.value.compare).toEqual({ from, until: (from + until) / 2 });
		compare();
		expect(sheet.value.time).toEqual({ from, until });
	});
});

describe("names", () => {
	it.each(vectors.visible)("of others are shown as $shown", ({ text, shown }) => {
		expect(visible(text)).toBe(shown);
	});
	it("are narrowed to a value, whatever is in it", () => {
		expect(filtered("io.ops[op=write]", "file", 'a"b\\c]')).toBe('io.ops[op=write][file="a\\"b\\\\c]"]');
		expect(filtered("io.ops[latency]", "op", "write")).toBe("io.ops[op=write][latency]");
		expect(filtered("io.ops", "op", "write")).toBe("io.ops[op=write]");
		expect(filtered("io.ops", "process", " a")).toBe('io.ops[process=" a"]');
		expect(filtered("io.ops", "process", "")).toBe('io.ops[process=""]');
		expect(filtered("io.ops", "process", "a b")).toBe("io.ops[process=a b]");
	});
	it("have a root and a breakdown", () => {
		expect(breakdownOf("io.ops[op=write][latency]")).toBe("latency");
		expect(breakdownOf("io.ops[op=write]")).toBe("");
		expect(brokenDown("io.ops[op=write][latency]", "process")).toBe("io.ops[op=write][process]");
		expect(brokenDown("io.ops[op]", "")).toBe("io.ops");
		expect(rootOf("io.ops[op=write][latency]")).toBe("io.ops");
	});
});

const facts = (name: string, fields: [string, "stack" | "heat"][], why = ""): StatisticFacts => ({
	name,
	about: `about ${name}`,
	covers: "",
	unit: "1/s",
	source: "block",
	sources: [],
	counted: false,
	filters: [],
	breakdowns: fields.map(([field, kind]) => ({ field, kind })),
	available: why === "",
	why_not: why,
	lacking: [],
});

describe("what can be added", () => {
	const all = choicesOf([
		facts("io.ops", [
			["latency", "heat"],
			["op", "stack"],
		]),
		facts("io.bytes", [["process", "stack"]]),
		facts("net.bytes", [["interface", "stack"]], "no counters were recorded"),
	]);
	it("has maps last within a statistic", () => {
		expect(all.map((each) => each.statistic)).toEqual([
			"io.ops",
			"io.ops[op]",
			"io.ops[latency]",
			"io.bytes",
			"io.bytes[process]",
			"net.bytes",
			"net.bytes[interface]",
		]);
	});
	it("is found first by its whole name, whatever else its words are in", () => {
		const many = choicesOf([
			facts("io.ops", [
				["file", "stack"],
				["queue", "heat"],
				["op", "stack"],
			]),
			facts("io.bytes", [["file", "stack"]]),
			facts("io.queue", [["queue", "heat"]]),
			facts("io.utilization", [["utilization", "heat"]]),
			facts("file.ops", [["file", "stack"]]),
			facts("file.bytes", [["file", "stack"]]),
			facts("cpu.utilization", [
				["cpu", "stack"],
				["utilization", "heat"],
			]),
			facts("a.late", [], "not here"),
		]);
		for (const each of many) expect(search(many, each.statistic)[0]).toBe(each);
		expect(
			search(many, "file.o")
				.map((each) => each.statistic)
				.slice(0, 2),
		).toEqual(["file.ops", "file.ops[file]"]);
	});
	it("is found by an operation and by what people call a field", () => {
		const many = choicesOf([
			{
				...facts("io.ops", [
					["op", "stack"],
					["latency", "heat"],
				]),
				filters: ["op"],
			},
			{ ...facts("arc.ops", [["device", "stack"]]), about: "what is read of disks" },
		]);
		const names = (typed: string) => search(many, typed).map((each) => each.statistic);
		expect(names("write")).toEqual(["io.ops[op=write]", "io.ops[op=write][latency]"]);
		expect(names("wri lat")).toEqual(["io.ops[op=write][latency]"]);
		expect(names("read")[0]).toBe("io.ops[op=read]");
		expect(names("read")).toContain("arc.ops");
		expect(names("disk")[0]).toBe("arc.ops[device]");
	});
	it("has what the events do not tell last, with why not", () => {
		const why = "no source tells the client yet";
		const told = facts("io.ops", [["op", "stack"]]);
		const found = choicesOf([{ ...told, lacking: [{ field: "client", kind: "stack", why_not: why }] }]);
		expect(found.map((each) => [each.statistic, each.why])).toEqual([
			["io.ops", ""],
			["io.ops[op]", ""],
			["io.ops[client]", why],
		]);
		expect(search(found, "io.ops").map((each) => each.statistic)).toEqual(["io.ops", "io.ops[op]", "io.ops[client]"]);
		expect(suggestions(found).map((each) => each.statistic)).toEqual(["io.ops[op]"]);
	});
	it("is found by typing, what can't be had last", () => {
		expect(search(all, "lat")[0]?.statistic).toBe("io.ops[latency]");
		expect(search(all, "bytes proc").map((each) => each.statistic)).toEqual(["io.bytes[process]"]);
		expect(search(all, "bytes").at(-1)?.why).toBe("no counters were recorded");
		expect(search(all, "nothing like it")).toEqual([]);
	});
	describe("is found by the words of the field", () => {
		const many = choicesOf([
			{
				...facts("io.ops", [
					["op", "stack"],
					["device", "stack"],
					["process", "stack"],
					["latency", "heat"],
					["offset", "heat"],
				]),
				filters: ["op", "device", "process"],
			},
			{ ...facts("io.bytes", [["process", "stack"]]), filters: ["op", "process"] },
			facts("io.utilization", [["device", "stack"]]),
			facts("io.queue", [["device", "stack"]]),
			facts("memory.bytes", []),
		]);
		it.each([
			["iops", "io.ops"],
			["throughput", "io.bytes"],
			["bandwidth", "io.bytes"],
			["slow", "io.ops[latency]"],
			["p99", "io.ops[latency]"],
			["queue depth", "io.queue"],
			["throughput by process", "io.bytes[process]"],
			["latency by disk", "io.ops[latency]"],
			["random", "io.ops[offset]"],
			["busy", "io.utilization"],
			["disk latency", "io.ops[latency]"],
			["write iops", "io.ops[op=write]"],
		])("%s", (typed, first) => {
			expect(search(many, typed)[0]?.statistic).toBe(first);
		});
		it("with the look that was meant", () => {
			expect(search(many, "p99")[0]?.look).toEqual({ painter: "percentiles" });
			expect(search(many, "latency by disk")[0]?.look).toEqual({ by: "device", mode: "rainbow" });
			expect(search(many, "latency")[0]?.look).toBeUndefined();
		});
		it("and by names of the recording", () => {
			const values = [
				{ field: "process", value: "postgres" },
				{ field: "device", value: 'nv"me]0' },
			];
			expect(search(many, "postg", values).map((each) => each.statistic)).toEqual([
				"io.ops[process=postgres][latency]",
				"io.bytes[process=postgres]",
			]);
			expect(search(many, "offset postgres", values)[0]?.statistic).toBe("io.ops[process=postgres][offset]");
			expect(search(many, "nv", values).map((each) => each.statistic)).toContain('io.ops[device="nv\\"me]0"][latency]');
			expect(search(many, "p", values)[0]?.statistic).not.toContain("postgres");
		});
	});
	it("has a plain title", () => {
		expect(titleOf("io.ops[latency]")).toBe("Disk: I/O operations by latency");
		expect(titleOf("io.ops[vdev=tank/mirror-0][device]")).toBe("Disk: I/O operations by disk (vdev tank/mirror-0)");
		expect(titleOf("zpool.ops[vdev=sda][vdev]")).toMatch(/ by disk \(disk sda\)$/);
		expect(titleOf("file.bytes[process=fio][file]")).toBe("Files: throughput by file (process fio)");
		expect(titleOf("io.ops[op=write][latency>=1ms]")).toBe("Disk: I/O operations (operation write, latency>=1ms)");
		expect(titleOf("nfs.client.latency[phase]")).toBe("NFS mounts: latency by phase");
		expect(titleOf('io.ops[process="a\u202e"][device]')).toBe('Disk: I/O operations by disk (process "a\\u202e")');
	});
	it("begins with a map", () => {
		expect(suggestions(all).map((each) => each.statistic)).toEqual([
			"io.ops[latency]",
			"io.ops[op]",
			"io.bytes[process]",
		]);
		expect(suggestions([])).toEqual([]);
	});
});
