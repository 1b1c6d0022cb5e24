// SPDX-License-Identifier: Apache-2.0
import { beforeEach, describe, expect, it } from "vitest";
import { Refusal } from "../src/api/question";
import { EMPTY, type GraphSpec, graphOf, sheet } from "../src/api/worksheet";
import type { Content } from "../src/canvas/content";
import type { Heat } from "../src/canvas/heat";
import { placeOf, REST } from "../src/canvas/hues";
import type { DrawnMap, Layers, StackAnswer } from "../src/generated/api";
import type { HeatMapCounts, HeatMapGroup, PartCounts, SparseCounts } from "../src/generated/maps";
import { mark, said, zoomTo } from "../src/worksheet/graph/actions";
import { colourNames, colourOfName } from "../src/worksheet/graph/colours";
import { contentOf, left, read, suits } from "../src/worksheet/graph/contents";
import { tellLost, tellOutside } from "../src/worksheet/graph/drawing";
import { unlisted } from "../src/worksheet/graph/list";
import { itemsOf } from "../src/worksheet/graph/panel";
import { placeIn } from "../src/worksheet/graph/selected";
import { differenceOf, forget, renew, stateOf } from "../src/worksheet/graph/state";
import { aboutOf, failed, foundOf, type Known, NOTHING } from "../src/worksheet/graph/use-answer";
import { formatPlace, parsePlace } from "../src/worksheet/worksheet-url";

const cells = (counts: number[]): SparseCounts => ({
	starts: Array.from({ length: counts.length + 1 }, (_, i) => i),
	rows: counts.map(() => 0),
	counts,
});

const drawnGroup: Omit<HeatMapGroup, "maps"> = {
	...{ y: "latency", title: "", unit: "ns", weight: "count", interval_ns: 10, columns: 1, bounds: [0, 1, 2] },
	...{ y_scale: "linear", color: "rank", low: 0, high: 2, least: 1, crops: [[0, 2]], lines: ["p50"] },
	...{ show_lines: false, difference: false },
};
const drawnMap: HeatMapCounts = {
	...{ label: "", begins: "", columns: 1, events: 9, cells: cells([9]), gaps: [], unrecorded: [], lost: [] },
	...{ overlays: [], dimensions: [], notes: [] },
};
const drawnParts: PartCounts[] = [
	{ name: "a", cells: cells([4]) },
	{ name: "", cells: cells([5]) },
];

describe("what was asked", () => {
	const words = { recording: "r", statistic: "io.ops[op]", source: "", from: "1", to: "2" };
	const known: Known<string> = { found: "answer", key: "query?to=1", about: aboutOf(words), problem: "" };

	it("stays while the service is away or has no time, and goes when it refuses", () => {
		for (const error of [new Refusal(503, "busy"), new TypeError("fetch failed")])
			expect(failed(known, error, "query?to=2", known.about)).toEqual(known);
		const refused = failed(known, new Refusal(422, "no such field"), "query?to=2", known.about);
		expect(foundOf(refused, words)).toEqual({ found: null, problem: "no such field" });
	});

	it("answers another time, never another recording, statistic or source", () => {
		expect(foundOf(known, { ...words, to: "3" }).found).toBe("answer");
		for (const other of [{ recording: "s" }, { statistic: "io.ops[op=read][op]" }, { source: "nvme" }])
			expect(foundOf(known, { ...words, ...other })).toEqual({ found: null, problem: "" });
		expect(foundOf(known, null)).toEqual({ found: null, problem: "" });
		expect(foundOf(NOTHING, words).found).toBe(null);
	});
});

describe("a graph of something else", () => {
	it("begins anew: nothing is marked, chosen, or held in colour", () => {
		const state = stateOf("other");
		state.mark.value = { from: 0, until: 1, low: 0, high: 1 };
		state.band.value = { low: 0, high: 1 };
		state.outside.value = "1 I/O above 1 ms";
		state.items.value = [{ key: "a", words: "", value: 1, colour: "", single: true }];
		const before = state.held;
		renew("other");
		expect(stateOf("other")).toBe(state);
		expect([state.mark.value, state.band.value, state.outside.value]).toEqual([null, null, ""]);
		expect([state.items.value, state.held === before]).toEqual([[], false]);
	});
});

describe("colours of names", () => {
	const sized = (...names: string[]) => names.map((key, i) => ({ key, value: 100 - i }));
	const coloured = (id: string, field: string, ...names: string[]) => {
		colourNames(id, field, sized(...names), []);
		return names.map((name) => colourOfName(field, name));
	};
	beforeEach(() => {
		sheet.value = { ...EMPTY, colours: {}, recording: "rec" };
		for (const id of ["one", "two", "three"]) forget(id);
	});

	it("are the same on all graphs of a field, in whatever order they are there", () => {
		const [five, none] = coloured("one", "device", "loop5", "loop0");
		const second = coloured("two", "device", "loop0", "loop3", "loop5");
		expect([second[0], second[2]]).toEqual([none, five]);
		expect(new Set(second).size).toBe(3);
	});

	it("belong to highlighted values of a map before their list is there, as in a shared file", () => {
		const spec: GraphSpec = { ...graphOf("io.ops[latency]", "early"), by: "device", highlights: ["a"] };
		const group = {
			...drawnGroup,
			maps: [{ ...drawnMap, dimensions: [{ name: "device", title: "", parts: drawnParts }] }],
		};
		const map = {
			kind: "map",
			statistic: "io.ops[latency]",
			t0_ns: 0,
			group,
			gaps: [],
			window: null,
		} as unknown as DrawnMap;
		const layers = { kind: "layers", by: "device", keys: ["a"], map } as unknown as Layers;
		expect(stateOf("early").items.value).toEqual([]);
		const heat = contentOf(spec, map, layers, "#ccc") as Heat;
		expect(heat.look.parts.map((part) => part.key)).toEqual(["a"]);
		expect(heat.look.parts[0]?.colour).not.toBe(REST);
		expect(colourOfName("device", "a")).toBe(heat.look.parts[0]?.colour);
		forget("early");
	});

	it("are those of the names: large ones have a hue, negligible ones are grey unless they are chosen", () => {
		const values = [...sized("db", "backup"), { key: "idle", value: 0.5 }];
		colourNames("one", "process", values, []);
		expect(colourOfName("process", "idle")).toBe(REST);
		colourNames("one", "process", values, ["idle"]);
		expect(colourOfName("process", "idle")).not.toBe(REST);
		expect(colourOfName("process", "unheard of")).toBe(REST);
	});

	it("come back from the address, also where names had to give way to larger ones", async () => {
		const rivals = Array.from({ length: 400 }, (_, i) => `p${i}`).filter((name) => placeOf("process", name) === 4);
		const before = coloured("one", "process", ...rivals.slice(0, 6));
		await Promise.resolve();
		expect(Object.keys(sheet.value.colours)).toHaveLength(5);
		const address = formatPlace(sheet.value);
		sheet.value = EMPTY;
		forget("one");
		sheet.value = parsePlace(address);
		// by now another one is the largest
		expect(coloured("one", "process", ...rivals.slice(0, 6).toReversed())).toEqual(before.toReversed());
	});

	it("go to names that are shown where there are not enough, and never to two of them", () => {
		const many = Array.from({ length: 12 }, (_, i) => `a${i}`);
		expect(new Set(coloured("one", "process", ...many)).size).toBe(12);
		expect(coloured("two", "process", "late")).toEqual([REST]);
		forget("one");
		expect(coloured("two", "process", "late", "later")).not.toContain(REST);
	});
});

describe("a content", () => {
	const layer = { key: "a", total: 2, mean: 1, values: [1, 1] };
	const stack = {
		...{ schema: 1, kind: "stack", statistic: "io.ops[op]", t0_ns: 0, interval_ns: 1, unit: "1/s", source: "" },
		...{
			first_ns: 0,
			until_ns: 2,
			covered_ns: 2,
			total: 2,
			mean: 1,
			notes: [],
			lost_by_column: [],
			losses: [],
			adds_up: true,
		},
		...{ keys: [layer], others: null },
	} as StackAnswer;
	const map: DrawnMap = {
		...{
			schema: 1,
			kind: "map",
			statistic: "io.ops[latency]",
			t0_ns: 0,
			interval_ns: 10,
			events: 9,
			notes: [],
			gaps: [],
			window: null,
		},
		group: { ...drawnGroup, maps: [drawnMap] },
	};
	const layers: Layers = {
		...{ schema: 1, kind: "layers", statistic: "io.ops[latency]", by: "op", keys: ["a"], rest: true },
		map: { ...map, group: { ...drawnGroup, maps: [{ ...drawnMap, dimensions: [{ name: "op", parts: drawnParts }] }] } },
	};

	it("is made of no field that is not among those that make it anew", () => {
		const spec: GraphSpec = { ...graphOf("io.ops[latency]", "c"), by: "op", highlights: ["a"], overlays: true };
		const fields = new Set<string | symbol>();
		const watched = new Proxy(spec, {
			get: (of, name) => {
				fields.add(name);
				return Reflect.get(of, name);
			},
		});
		read(watched);
		const listed = new Set(fields);
		for (const mode of ["highlight", "isolate", "exclude", "rainbow"] as const) {
			spec.mode = mode;
			expect(contentOf(watched, map, layers, "#ccc")).not.toBe(null);
			expect(contentOf(watched, stack, null, "#ccc")).not.toBe(null);
		}
		expect(fields).toEqual(listed);
		for (const name of ["span", "synced", "panel", "width", "height"]) expect(listed).not.toContain(name);
	});

	it("that is a difference leaves what the map beside it says, and has its own mark", () => {
		const spec: GraphSpec = { ...graphOf("io.ops[latency]", "both"), rows: { low: 1, high: 2 } };
		const heat = contentOf(spec, map, null, "#ccc") as Content;
		const box = { left: 0, top: 0, width: 100, height: 100 };
		heat.settle({ from: 0, to: 10 }, box);
		tellOutside(spec.id, heat);
		const said = stateOf(spec.id).outside.value;
		expect(said).toBe("9 I/Os below 1 ns");
		const other = contentOf(spec, stack, null, "#ccc") as Content;
		tellOutside(spec.id, Object.create(other, { compared: { value: true } }));
		expect(stateOf(spec.id).outside.value).toBe(said);
		const drawn = { box, span: { from: 0, to: 10 }, zoom: 1, content: other, spec, marks: differenceOf(spec.id) };
		mark({ ...drawn, draw: () => {} }, [
			[10, 10],
			[50, 50],
		]);
		expect(stateOf(differenceOf(spec.id)).mark.value).toMatchObject({ mapped: false });
		// numbers of the same graph have nothing outside of their axis
		tellOutside(spec.id, other);
		expect(stateOf(spec.id).outside.value).toBe("");
		expect(stateOf(spec.id).mark.value).toBe(null);
	});

	it("says of a column what was lost there, under the pointer, to the keys and in the caption", () => {
		const spec = graphOf("io.ops[op]", "lossy");
		const losses = [
			{ kind: "lost" as const, count: 1204, columns: [[1, 1204]] as [number, number][] },
			{ kind: "damaged" as const, count: 3, columns: [[1, 3]] as [number, number][] },
		];
		const content = contentOf(spec, { ...stack, losses }, null, "#ccc") as Content;
		const [box, span] = [
			{ left: 0, top: 0, width: 100, height: 100 },
			{ from: 0, to: 2 },
		];
		content.settle(span, box);
		const drawn = { box, span, zoom: 1, content, spec, marks: spec.id, draw: () => {} };
		const missing = "1 204 records were lost, 3 records could not be read";
		expect(said(drawn, [75, 105])).toMatchObject({ missing });
		expect(said(drawn, [75, 50])).toMatchObject({ missing });
		expect(said(drawn, [25, 105])).toMatchObject({ missing: "nothing" });
		expect(said(drawn, [25, 50])).not.toHaveProperty("missing");
		expect(said(drawn, [75, 120])).toBe(null);
		tellLost(spec.id, span, content);
		expect(stateOf(spec.id).lost.value).toBe(missing);
		tellLost(spec.id, { from: 0, to: 1 }, content);
		expect(stateOf(spec.id).lost.value).toBe("");
	});

	it("is zoomed to the values of a marked map, whatever stands above it", () => {
		const spec = graphOf("io.ops[latency]", "zoomed");
		sheet.value = { ...EMPTY, graphs: [spec] };
		stateOf(spec.id).content.value = contentOf(spec, stack, null, "#ccc");
		const marked = { from: 0, until: 10, low: 1, high: 2 };
		zoomTo(spec, { ...marked, mapped: false }, false);
		expect(sheet.value.graphs[0]?.rows).toBe(null);
		zoomTo(spec, { ...marked, mapped: true }, false);
		expect(sheet.value.graphs[0]?.rows).toEqual({ low: 1, high: 2 });
		sheet.value = EMPTY;
	});

	it("lists a selected second: a column, or what is asked for where it is none, and says what is not shown", () => {
		const t0_ns = 1_700_000_000e9;
		const of = (interval_ns: number, values: (number | null)[]) =>
			({ ...stack, t0_ns, interval_ns, keys: [{ ...layer, values, mean: 5 }] }) as StackAnswer;
		const at = (from: number, seconds = 1) => ({ from: t0_ns + from * 1e9, until: t0_ns + (from + seconds) * 1e9 });
		const seconds = of(1e9, [1, null, 3]);
		expect([0, 2, 3, -1, 2.5].map((from) => placeIn(seconds, at(from)))).toEqual([0, 2, "outside", "outside", "other"]);
		expect(placeIn(of(1e8, Array(30).fill(1)), at(1))).toBe("other");
		expect(placeIn(of(1e8, Array(30).fill(1)), at(1.5, 0.1))).toBe(15);
		expect(placeIn(seconds, at(0, 2))).toBe("other");
		const words = (...[place, one]: [Parameters<typeof itemsOf>[2], StackAnswer | null]) =>
			itemsOf("io.ops[op]", seconds, place, one, () => "").map((item) => item.words);
		expect(words("all", null)).toEqual(["5/s"]);
		expect(words(2, null)).toEqual(["3/s"]);
		expect(words(1, null)).toEqual(["nothing recorded"]);
		expect(words("outside", null)).toEqual(["not shown"]);
		expect(words("other", null)).toEqual(["…"]);
		expect(words("other", { ...seconds, keys: [{ ...layer, mean: 7, values: [7] }] })).toEqual(["7/s"]);
		const other = { ...seconds, keys: [{ ...layer, key: "b", mean: 7, values: [7] }] };
		expect(words("other", other)).toEqual(["7/s", "0/s"]);
		const others = { keys: 2, total: 1, mean: 1, values: [1] };
		expect(words("other", { ...other, others })).toEqual(["7/s", "among the others", "1/s"]);
		expect(words("other", { ...seconds, keys: [], covered_ns: 0 })).toEqual(["nothing recorded"]);
	});

	it("takes any maps that tell values of the field apart", () => {
		expect(suits(layers, { by: "op" })).toBe(true);
		expect(suits(layers, { by: "device" })).toBe(false);
		expect(suits(null, { by: "op" })).toBe(false);
	});

	it("says when more values are chosen than are told apart, and where the others are", () => {
		const highlights = "abcdefghijklm".split("");
		const spec = { by: "process", highlights, mode: "highlight" as const };
		expect(left(spec, 30)).toBe("12 of 13 chosen values are shown separately");
		expect(left({ ...spec, highlights: highlights.slice(2) }, 30)).toBe("");
		expect(left({ ...spec, by: "" }, 30)).toBe("");
		expect(left({ ...spec, mode: "rainbow" }, 30)).toBe("12 of 30 values are in colour, the others are grey");
		expect(left({ ...spec, mode: "rainbow" }, 12)).toBe("");
		const item = (key: string, single: boolean) => ({ key, words: "", value: 1, colour: "", single });
		expect(unlisted([item("a", true), item("4 others", false)])).toBe("among the others");
		expect(unlisted([item("a", true)])).toBe("not here");
	});
});
