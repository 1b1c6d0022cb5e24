// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { sheet } from "../src/api/worksheet";
import { shortened } from "../src/canvas/annotations";
import type { AlertState, Mark } from "../src/generated/api";
import { alertFrom, alerts, limitsOf } from "../src/worksheet/alerts-now";
import { unitOf } from "../src/worksheet/dialogs/alert-form";
import { lineOf, runTimes, wordsOf } from "../src/worksheet/marks";
import { common } from "../src/worksheet/recorded";

const mark = (facts: Mark["facts"]): Mark => ({
	label: "0042",
	kind: "run",
	from_ns: 0,
	until_ns: 1,
	link: null,
	facts,
});

describe("a mark in words", () => {
	it("says variant, cell, verdict and reasons", () => {
		const facts = { variant: "patch", cell: { disks: "4", rw: "read" }, verdict: "SUSPECT", reasons: ["a stall"] };
		expect(lineOf(mark(facts))).toBe("0042 · patch disks=4 rw=read · SUSPECT · a stall");
	});

	it("does not cover a plot, however long its command is", () => {
		expect(shortened("flush begins")).toBe("flush begins");
		expect(shortened(`fio --name=db ${"--option ".repeat(20)}`)).toMatch(/^fio --name=db .{25}…$/);
	});

	it("takes what is damaged as unknown", () => {
		expect(wordsOf(mark({ variant: 7, cell: null, verdict: {}, reasons: "x", note: ["y"] }))).toEqual({
			label: "0042",
			what: "",
			verdict: "",
			note: "",
		});
	});
});

describe("pauses between runs", () => {
	const run = (from_ns: number, until_ns: number | null): Mark => ({ ...mark({}), from_ns, until_ns });

	it("are no times in which I/O was due", () => {
		const runs = runTimes([run(200, null), run(100, 150), { ...run(0, 500), kind: "user" }], 0);
		expect(runs).toEqual([
			{ from: 100, until: 150 },
			{ from: 200, until: Number.POSITIVE_INFINITY },
		]);
		const idle = [
			[0, 60],
			[65, 90],
			[160, 170],
			[170, 300],
		] as const;
		// times of idle spans count from an origin
		expect(common(idle, runs ?? [], 50)).toEqual([
			[50, 60],
			[65, 90],
			[160, 170],
			[170, 300],
		]);
		expect(common([[0, 45]], runs ?? [], 50)).toEqual([]);
	});

	it("are not known of a recording without runs, or before the first listed one", () => {
		expect(runTimes([{ ...run(0, 5), kind: "user" }], 0)).toBeNull();
		expect(runTimes([run(100, 150)], 3)?.[0]).toEqual({ from: Number.NEGATIVE_INFINITY, until: 100 });
	});
});

describe("alerts of a graph", () => {
	it("begin from what it shows", () => {
		const made = alertFrom({ statistic: "io.ops[op=read][latency]" }, 5e6);
		expect([made.statistic, made.percentile, made.exceeds]).toEqual(["io.ops[op=read][latency]", "p99", 5e6]);
		expect(unitOf(made)).toEqual({ scale: 1e6, unit: "ms" });
		const plain = alertFrom({ statistic: "io.ops[op=read][process]" }, null);
		expect([plain.statistic, plain.percentile]).toEqual(["io.ops[op=read]", ""]);
		expect(unitOf(plain)).toEqual({ scale: 1, unit: "" });
	});

	it("are limits of the same statistic and recording alone", () => {
		sheet.value = { ...sheet.value, recording: "rec" };
		const state = (statistic: string, recording: string): AlertState => ({
			alert: { ...alertFrom({ statistic }, 2e6), name: "slow", recording },
			state: "raised",
			since_ns: 0,
			value: 1,
			unit: "ns",
			problem: "",
			sentence: "",
		});
		const states = [state("io.ops[latency]", "rec"), state("io.ops[latency]", "other"), state("io.ops[size]", "rec")];
		alerts.value = { ...alerts.value, states };
		expect(limitsOf({ statistic: "io.ops[latency]" })).toEqual([
			{ name: "slow", value: 2e6, words: "slow: p99 > 2 ms", raised: true },
		]);
		alerts.value = { ...alerts.value, states: [] };
	});
});
