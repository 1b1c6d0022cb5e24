// SPDX-License-Identifier: Apache-2.0
import { parse, type Spec, View } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile, type TopLevelSpec } from "vega-lite";
import { describe, expect, it } from "vitest";
import { hueOf, placeOf } from "../src/canvas/hues";
import { seriesSpec } from "../src/canvas/series";
import { specOf } from "../src/canvas/vega";
import type { ChartItem, RunDetail } from "../src/generated/report";

/** A specification drawn as the page draws it: expressions interpreted, none compiled. */
async function svg(spec: TopLevelSpec): Promise<string> {
	const runtime = parse(compile(spec).spec as Spec, undefined, { ast: true } as never);
	return new View(runtime, { expr: expressionInterpreter, renderer: "none" } as never).toSVG();
}

const run = (values: (number | null)[]): RunDetail => ({
	reasons: [],
	facts: [],
	observations: [],
	command: "",
	job: "",
	links: [],
	assumptions: [],
	spans: [[1, 3]],
	marks: [],
	strips: [
		{
			name: "device.write.bw",
			title: "device write throughput",
			unit: "MiB/s",
			note: "9000 readings, thinned",
			lines: [
				{ device: "", time: 0, values },
				{ device: "sda", time: 0, values },
			],
		},
	],
});

describe("per-second series", () => {
	it("draw the whole, its devices, the stall and what was thinned", async () => {
		const drawn = await svg(seriesSpec(run([5, 0, 0, 7]), [[1, 2, 3, 4]]));
		expect(drawn).toContain("device write throughput (MiB/s)");
		expect(drawn).toContain("9000 readings, thinned");
		expect(drawn).toContain("sda");
		expect(drawn).toContain("seconds since the window began");
	});

	it("have disks in the colours of a worksheet", async () => {
		const colour = hueOf(placeOf("device", "sda"));
		expect(await svg(seriesSpec(run([5, 6]), [[1, 2]]))).toContain(`stroke="${colour}"`);
		const dark = hueOf(placeOf("device", "sda"), true);
		expect(await svg(seriesSpec(run([5, 6]), [[1, 2]], true))).toContain(`stroke="${dark}"`);
	});

	it("break the line where nothing is known", async () => {
		const moves = (drawn: string) =>
			[...drawn.matchAll(/ d="(M[^"]+)"/g)]
				.map((match) => match[1] ?? "")
				.filter((path) => /^M[^MZ]+L.*M[^MZ]+/.test(path));
		const gap = moves(await svg(seriesSpec(run([5, 6, null, 7, 8]), [[1, 2, 3, 4, 5]])));
		const whole = moves(await svg(seriesSpec(run([5, 6, 6, 7, 8]), [[1, 2, 3, 4, 5]])));
		expect(gap.length).toBeGreaterThan(whole.length);
	});

	it("show readings that have none before and after them", async () => {
		const points = (drawn: string) => drawn.split("mark-symbol role-mark").length - 1;
		const [joined, single] = [
			await svg(seriesSpec(run([5, 6, 7]), [[1, 2, 3]])),
			await svg(seriesSpec(run([5, null, 7]), [[1, 2, 3]])),
		];
		// one group of points for all devices, and one for each device
		expect(points(single) - points(joined)).toBe(2);
	});

	it("tell what was done meanwhile, its name once", async () => {
		const one = run([5, 0, 0, 7]);
		const done = { ...one, strips: [...one.strips, ...one.strips], marks: [[2.5, "cache on"] as [number, string]] };
		const drawn = await svg(seriesSpec(done, [[1, 2, 3, 4]]));
		expect([...drawn.matchAll(/>cache on</g)]).toHaveLength(1);
		expect(drawn.split("stroke-dasharray").length - 1).toBeGreaterThanOrEqual(2);
		expect(await svg(seriesSpec(one, [[1, 2, 3, 4]]))).not.toContain("stroke-dasharray");
	});

	it("survive a run without a single reading", async () => {
		expect(await svg(seriesSpec({ ...run([]), strips: [] }, []))).toContain("<svg");
	});
});

describe("a chart's specification", () => {
	const chart: ChartItem = {
		name: "c",
		title: "C",
		caption: "",
		spec: {
			title: "heading",
			data: { name: "abc" },
			mark: "point",
			encoding: { x: { field: "x", type: "quantitative" } },
		},
		data: ["abc"],
		table: "abc",
		table_columns: ["x"],
	};

	it("gets its data and loses the heading that the page shows", () => {
		const spec = specOf(chart, { abc: { length: 2, columns: { x: [1, 2] }, constants: {} } });
		expect(spec).not.toHaveProperty("title");
		expect(spec.datasets).toEqual({ abc: [{ x: 1 }, { x: 2 }] });
	});

	it("stands without data rather than not at all", async () => {
		expect(await svg(specOf(chart, {}))).toContain("<svg");
	});
});
