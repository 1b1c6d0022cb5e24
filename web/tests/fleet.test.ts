// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { colourRange, largest, levelIn, type Measure, valueAt } from "../src/fleet/measures";
import { addressOf, answer, by, filter, hosts, labelNames, order, showHosts } from "../src/fleet/state";
import type { FleetAnswer } from "../src/generated/api";

const row = (host: string, values: (number | null)[], labels: Record<string, string> = {}) => ({
	host,
	hosts: 1,
	labels,
	values,
	problem: "",
	recordings: [
		{ name: `${host} 1`, first_ns: 1000, last_ns: 1999 },
		{ name: `${host} 2`, first_ns: 3000, last_ns: 3999 },
	],
});

const shown: FleetAnswer = {
	schema: 1,
	archive: "a",
	archives: ["a"],
	whole: "all",
	live: false,
	by: "host",
	labels: [],
	measure: "p99",
	unit: "ns",
	clock: "realtime",
	t0_ns: 1000,
	interval_ns: 500,
	columns: 6,
	first_ns: 1000,
	last_ns: 3999,
	hosts: [row("b", [1, null]), row("a", [null, null]), row("C", [100, 10])],
	notes: [],
};

describe("colours", () => {
	it("of latencies are logarithmic, from the least to the most", () => {
		const range = colourRange("p99", shown.hosts);
		expect(range).toEqual([1, 100]);
		const levels = [1, 10, 100, null].map((value) => levelIn("p99", [1, 100], value));
		expect(levels).toEqual([0, 0.5, 1, null]);
		expect(valueAt("p99", [1, 100], 0.5)).toBe(10);
	});

	it("of losses have none where nothing was lost", () => {
		expect(levelIn("losses", [5, 50], 0)).toBeNull();
		expect(colourRange("losses", [{ values: [0, 0] }])).toEqual([1, 1]);
	});

	it("of rates begin at 0, and of shares are the same whatever the values", () => {
		expect(colourRange("iops", [{ values: [3, 6] }])).toEqual([0, 6]);
		expect(levelIn("iops", [0, 6], 3)).toBe(0.5);
		expect(colourRange("utilization", [{ values: [0.2] }])).toEqual([0, 1]);
		expect(levelIn("utilization", [0, 1], 1.01)).toBe(1);
	});

	it("are none without a value", () => {
		for (const measure of ["p99", "iops", "utilization", "losses"] as Measure[]) {
			expect(colourRange(measure, [{ values: [null] }])).toBeNull();
		}
		expect(largest([null])).toBeNull();
		expect(largest([null, 0, -1])).toBe(0);
	});
});

describe("rows", () => {
	it("of a label lead to its hosts", () => {
		by.value = "rack";
		order.value = "label:rack";
		showHosts(row("r1", [1]), "rack");
		expect([by.value, filter.value, order.value]).toEqual(["host", "rack=r1", "name"]);
		by.value = "rack";
		showHosts(row("-", [1]), "rack");
		expect([by.value, filter.value]).toEqual(["host", ""]);
	});

	it("are ordered and chosen by name, or the largest first", () => {
		answer.value = shown;
		expect(hosts.value.map(({ host }) => host)).toEqual(["b", "a", "C"]);
		order.value = "value";
		expect(hosts.value.map(({ host }) => host)).toEqual(["C", "b", "a"]);
		filter.value = "c";
		expect(hosts.value.map(({ host }) => host)).toEqual(["C"]);
	});

	it("are ordered and chosen by labels, those without one last", () => {
		const racks = [row("a", []), row("b", [], { rack: "r10" }), row("c", [], { rack: "r2", role: "db" })];
		answer.value = { ...shown, labels: ["rack", "role"], hosts: racks };
		filter.value = "";
		expect(labelNames.value).toEqual(["rack", "role"]);
		order.value = "label:rack";
		expect(hosts.value.map(({ host }) => host)).toEqual(["c", "b", "a"]);
		filter.value = "rack=r1";
		expect(hosts.value.map(({ host }) => host)).toEqual(["b"]);
	});
});

describe("a cell", () => {
	it("opens the recording of its time, with a column before and after", () => {
		const words = (column: number) => new URLSearchParams(addressOf(row("a", []), column, shown).split("#")[1]);
		expect(Object.fromEntries(words(0))).toEqual({
			recording: "a 1",
			from: "1000",
			to: "2000",
			graph: "io.ops[latency]",
		});
		expect(words(4).get("recording")).toBe("a 2");
		expect(addressOf(row("a", []), 2, shown)).toBe("");
	});
});
