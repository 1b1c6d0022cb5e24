// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { decodeHeat } from "../src/api/binary";
import { fill, geometry } from "../src/canvas/cells";
import type { DrawnMap, Layers } from "../src/generated/api";
import type { SparseCounts } from "../src/generated/maps";

interface Cell {
	column: number;
	row: number;
	count: number;
}

const EMPTY = { starts: [], rows: [], counts: [] };
const COLUMNS = 4;
const BOUNDS = [1, 2, 4, 8];

const mapOf = (parts: string[]) => ({
	label: "rec",
	begins: "",
	columns: COLUMNS,
	events: 1,
	cells: EMPTY,
	gaps: [],
	unrecorded: [],
	lost: [],
	overlays: [],
	dimensions: parts.length > 0 ? [{ name: "op", parts: parts.map((name) => ({ name, cells: EMPTY })) }] : [],
	notes: [],
});

const headOf = (parts: string[] = []): Record<string, unknown> => ({
	schema: 1,
	kind: "map",
	statistic: "io.ops[latency]",
	t0_ns: 0,
	interval_ns: 10,
	events: 1,
	notes: [],
	gaps: [],
	group: { y: "latency", interval_ns: 10, columns: COLUMNS, bounds: BOUNDS, maps: [mapOf(parts)] },
});

/** A map as docs/reference/api.md describes it. */
function written(head: unknown, cells: readonly Cell[], wide = false): ArrayBuffer {
	const words = new TextEncoder().encode(JSON.stringify(head));
	const length = Math.ceil(words.length / 8) * 8;
	const buckets = BOUNDS.length - 1;
	const buffer = new ArrayBuffer(24 + length + 16 * buckets + (wide ? 16 : 12) * cells.length);
	const view = new DataView(buffer);
	const bytes = new Uint8Array(buffer);
	bytes.set(new TextEncoder().encode("ioHm"));
	view.setUint8(4, 1);
	view.setUint8(5, wide ? 1 : 0);
	view.setUint32(8, cells.length, true);
	view.setUint32(12, buckets, true);
	view.setUint32(16, length, true);
	bytes.fill(32, 24, 24 + length);
	bytes.set(words, 24);
	let place = 24 + length;
	for (const part of [BOUNDS.slice(0, -1), BOUNDS.slice(1)])
		for (const bound of part) {
			view.setBigUint64(place, BigInt(bound), true);
			place += 8;
		}
	for (const { count } of cells) {
		if (wide) view.setBigUint64(place, BigInt(count), true);
		else view.setUint32(place, count, true);
		place += wide ? 8 : 4;
	}
	for (const { column } of cells) {
		view.setInt32(place, column, true);
		place += 4;
	}
	for (const { row } of cells) {
		view.setUint32(place, row, true);
		place += 4;
	}
	return buffer;
}

const CELLS = [
	{ column: 0, row: 1, count: 5 },
	{ column: 2, row: 0, count: 7 },
	{ column: 2, row: 2, count: 1 },
];
const listed = (cells: SparseCounts) => ({
	starts: Array.from(cells.starts),
	rows: Array.from(cells.rows),
	counts: Array.from(cells.counts),
});

describe("maps in binary", () => {
	it("have their cells by column, in arrays that are drawn as they are", () => {
		const answer = decodeHeat(written({ ...headOf(), sizes: [3] }, CELLS)) as DrawnMap;
		const group = answer.group;
		const cells = group?.maps[0]?.cells;
		if (!group || !cells) throw new Error("no cells");
		expect(listed(cells)).toEqual({ starts: [0, 1, 1, 3, 3], rows: [1, 0, 2], counts: [5, 7, 1] });
		expect(answer).not.toHaveProperty("sizes");
		const axis = { low: 1, high: 8, scale: "log" as const };
		const shape = geometry(group, { from: 0, to: 40 }, axis, { width: 400, height: 300 }, { wide: 2, high: 3 });
		expect(fill(cells, shape)).toMatchObject({ total: 13, above: 0, below: 0 });
	});
	it("hold counts beyond 32 bits", () => {
		const cells = [{ column: 3, row: 0, count: 2 ** 40 }];
		const answer = decodeHeat(written({ ...headOf(), sizes: [1] }, cells, true)) as DrawnMap;
		expect(Array.from(answer.group?.maps[0]?.cells.counts ?? [])).toEqual([2 ** 40]);
	});
	it("have the cells of each layer behind those of all", () => {
		const head = { schema: 1, kind: "layers", statistic: "", by: "op", keys: ["read"], rest: true };
		const parts = [...CELLS, CELLS[0], CELLS[1], CELLS[2]] as Cell[];
		const answer = decodeHeat(
			written({ ...head, map: headOf(["read", "(others)"]), sizes: [3, 1, 2] }, parts),
		) as Layers;
		const [read, others] = answer.map.group?.maps[0]?.dimensions[0]?.parts ?? [];
		expect(listed(read?.cells ?? EMPTY)).toEqual({ starts: [0, 1, 1, 1, 1], rows: [1], counts: [5] });
		expect(listed(others?.cells ?? EMPTY)).toEqual({ starts: [0, 0, 0, 2, 2], rows: [0, 2], counts: [7, 1] });
	});
	it("may be empty", () => {
		const answer = decodeHeat(written({ ...headOf(), group: null, sizes: [] }, [])) as DrawnMap;
		expect(answer.group).toBeNull();
	});
	it.each([
		["another form", (good: ArrayBuffer) => new TextEncoder().encode('{"schema":1}'.padEnd(good.byteLength)).buffer],
		["nothing", () => new ArrayBuffer(0)],
		["a map that was cut", (good: ArrayBuffer) => good.slice(0, good.byteLength - 4)],
		["a map with more behind it", (good: ArrayBuffer) => new Uint8Array([...new Uint8Array(good), 0, 0, 0, 0]).buffer],
	])("are refused where they are %s", (_, spoil) => {
		expect(() => decodeHeat(spoil(written({ ...headOf(), sizes: [3] }, CELLS)))).toThrow(/answered with/);
	});
	it.each([
		["a newer version", { version: 2, head: {}, cells: CELLS }],
		["parts that don't add up", { version: 1, head: { sizes: [2] }, cells: CELLS }],
		["a part too many", { version: 1, head: { sizes: [2, 1] }, cells: CELLS }],
		["columns out of order", { version: 1, head: {}, cells: CELLS.toReversed() }],
		[
			"a column beyond the last",
			{ version: 1, head: {}, cells: [...CELLS.slice(0, 2), { column: 4, row: 0, count: 1 }] },
		],
		["another kind", { version: 1, head: { kind: "heat" }, cells: CELLS }],
		["no parts", { version: 1, head: { sizes: undefined }, cells: CELLS }],
	])("are refused where they have %s", (_, { version, head, cells }) => {
		const buffer = written({ ...headOf(), sizes: [3], ...head }, cells);
		new DataView(buffer).setUint8(4, version);
		expect(() => decodeHeat(buffer)).toThrow(/answered with/);
	});
	it("are refused where their head is no JSON", () => {
		const buffer = written({ ...headOf(), sizes: [3] }, CELLS);
		new Uint8Array(buffer)[24] = 0;
		expect(() => decodeHeat(buffer)).toThrow(/answered with/);
	});
	it.each([8, 12, 16])("are refused where a length at %i is beyond the end", (place) => {
		const buffer = written({ ...headOf(), sizes: [3] }, CELLS);
		new DataView(buffer).setUint32(place, 0xffffffff, true);
		expect(() => decodeHeat(buffer)).toThrow(/answered with/);
	});
});
