// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { tooltipRows } from "../src/canvas/tooltip";
import type { Dataset, RunTable } from "../src/generated/report";
import { csv, rows } from "../src/lib/datasets";
import { decode } from "../src/lib/decode";
import { formatPlace, parsePlace } from "../src/report/report-url";
import { filtered, filterFor, sorted } from "../src/report/run-table";

const column = (key: string, values: RunTable["columns"][number]["values"], texts: string[] | null = null) => ({
	key,
	title: key,
	unit: "",
	numeric: typeof values[0] === "number",
	values,
	texts,
});

const TABLE: RunTable = {
	ids: ["0001-aa", "0002-bb", "0003-cc", "0010-dd"],
	levels: ["OK", "INVALID", "SUSPECT", "OK"],
	columns: [
		column("variant", ["master", "project", "master", "project"]),
		column("disks", [1, 8, 8, 16], ["1", "8", "8", "16"]),
		column("write.iops", [100, null, 50, 75.5], ["100", "", "50", "75.5"]),
	],
};

/** gzip in base64, as Python packs the report's documents. */
async function pack(text: string): Promise<string> {
	const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
	const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
	return btoa(String.fromCharCode(...bytes));
}

describe("packed documents", () => {
	it("come back as they were, whatever their letters", async () => {
		const text = JSON.stringify({ name: "</script> ü 🙂", n: 0.1 });
		expect(await decode(await pack(text))).toBe(text);
	});

	it("say so when they are cut", async () => {
		const whole = await pack("x".repeat(5000));
		await expect(decode(whole.slice(0, 20))).rejects.toThrow("damaged");
	});
});

describe("datasets", () => {
	const dataset: Dataset = {
		length: 2,
		columns: { x: [1, 2], label: ["a,b", 'say "no"'] },
		constants: { unit: "1/s", low: null },
	};

	it("become rows", () => {
		expect(rows(dataset)).toEqual([
			{ unit: "1/s", low: null, x: 1, label: "a,b" },
			{ unit: "1/s", low: null, x: 2, label: 'say "no"' },
		]);
		expect(rows({ length: 0, columns: {}, constants: {} })).toEqual([]);
	});

	it("become CSV with what needs quoting quoted and numbers whole", () => {
		const numbers: Dataset = { length: 1, columns: { v: [0.1 + 0.2] }, constants: {} };
		expect(csv(dataset, ["x", "label", "low"])).toBe('x,label,low\n1,"a,b",\n2,"say ""no""",\n');
		expect(csv(numbers, ["v"])).toBe("v\n0.30000000000000004\n");
	});
});

describe("the address", () => {
	it("keeps a place and gives it back", () => {
		const place = { metric: "write.clat.p99.9", run: "0001-aa", filter: "disks:8 a&b=c#d", cell: "12" };
		expect(parsePlace(formatPlace(place))).toEqual(place);
		expect(formatPlace({ metric: "", run: "", filter: "", cell: "" })).toBe("");
	});

	it("tells an anchor from a place", () => {
		expect(parsePlace("#runs")).toBeNull();
		expect(parsePlace("")).toEqual({ metric: "", run: "", filter: "", cell: "" });
		expect(parsePlace("#metric=x&unknown=1")).toEqual({ metric: "x", run: "", filter: "", cell: "" });
	});
});

describe("the table of runs", () => {
	const all = [0, 1, 2, 3];

	it("sorts numbers as numbers, with the unknown last both ways", () => {
		expect(sorted(TABLE, all, { key: "disks", descending: false })).toEqual([0, 1, 2, 3]);
		expect(sorted(TABLE, all, { key: "write.iops", descending: false })).toEqual([2, 3, 0, 1]);
		expect(sorted(TABLE, all, { key: "write.iops", descending: true })).toEqual([0, 3, 2, 1]);
	});

	it("sorts verdicts by gravity and runs that compare equal by order", () => {
		expect(sorted(TABLE, all, { key: "verdict", descending: true })).toEqual([1, 2, 0, 3]);
		expect(sorted(TABLE, all, { key: "run", descending: true })).toEqual([3, 2, 1, 0]);
		expect(sorted(TABLE, all, { key: "no such column", descending: false })).toEqual(all);
	});

	it("finds words anywhere and keyed words whole", () => {
		expect(filtered(TABLE, "")).toEqual(all);
		expect(filtered(TABLE, "PROJECT")).toEqual([1, 3]);
		expect(filtered(TABLE, "disks:8")).toEqual([1, 2]);
		expect(filtered(TABLE, "disks=1")).toEqual([0]);
		expect(filtered(TABLE, "verdict:suspect,invalid")).toEqual([1, 2]);
		expect(filtered(TABLE, "master disks:8")).toEqual([2]);
		expect(filtered(TABLE, "nothing:here")).toEqual([]);
	});

	it("doesn't search measured numbers", () => {
		expect(filtered(TABLE, "75.5")).toEqual([]);
	});

	it("makes a filter that finds just these runs", () => {
		expect(filtered(TABLE, filterFor(TABLE, [1, 3]))).toEqual([1, 3]);
	});
});

describe("tooltips", () => {
	it("are lines of text", () => {
		const row = (name: string, words: string) => ({ name, words, colour: "", near: false });
		expect(tooltipRows({ device: "sda", value: 3 })).toEqual([row("device", "sda"), row("value", "3")]);
		expect(tooltipRows("plain")).toEqual([row("", "plain")]);
		expect(tooltipRows({ time: "now", nothing: "happened" })).toEqual([row("", "now"), row("", "nothing happened")]);
		const read = { words: "5/s", colour: "#123456", near: true };
		expect(tooltipRows({ read })).toEqual([{ name: "read", ...read }]);
	});
});
