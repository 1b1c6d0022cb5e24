// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { paintLegend } from "../src/canvas/legend";
import { UNITS } from "../src/canvas/ticks";
import type { ThemeColours } from "../src/generated/maps";
import { amount } from "../src/heatmap/who";
import { counted } from "../src/worksheet/graph/values";

/** The texts of a legend of cells with so many at least and at most. */
function legend(weight: keyof typeof UNITS, least: number, most: number, signed = false, room = 60): string[] {
	const found: string[] = [];
	const context = {
		canvas: { width: 100 + 31 + room },
		getTransform: () => ({ a: 1 }),
		measureText: (text: string) => ({ width: 7 * text.length }),
		fillRect: () => undefined,
		fillText: (text: string) => found.push(text),
	};
	const colours = { text: "", faint: "", lines: [] } as unknown as ThemeColours;
	paintLegend(context as unknown as CanvasRenderingContext2D, { left: 0, top: 0, width: 100, height: 100 }, colours, {
		scale: { kind: "linear", counts: [least, most], levels: [0, 1] },
		palette: ["a", "b"],
		signed,
		unit: UNITS[weight],
		lines: [],
		lift: 0,
	});
	return found.slice(0, 3);
}

describe("what the cells of a map hold", () => {
	it("is said in the legend: I/Os, the time spent in them, or the bytes that they moved", () => {
		expect(legend("count", 1, 2048).at(-1)).toMatch(/^2\s048$/);
		expect(legend("time", 1000, 2_000_000).at(-1)).toBe("2 ms");
		expect(legend("bytes", 4096, 2 ** 31)).toEqual(["4 KiB", expect.stringMatching(/iB$/), "2 GiB"]);
		expect(legend("bytes", 0, 2 ** 20, true)).toEqual(["-1 MiB", "0", "+1 MiB"]);
		// without room for all digits
		expect(legend("count", 1, 34_750, false, 34)).toEqual(["1", expect.stringMatching(/^\d+K$/), "35K"]);
	});

	it("has room below the names of lines, and no number twice", () => {
		const written: [string, number][] = [];
		const context = {
			canvas: { width: 200 },
			getTransform: () => ({ a: 1 }),
			measureText: () => ({ width: 7 }),
			fillRect: () => undefined,
			fillText: (text: string, _: number, y: number) => written.push([text, y]),
		};
		const colours = { text: "", faint: "", lines: [] } as unknown as ThemeColours;
		const box = { left: 0, top: 0, width: 100, height: 190 };
		paintLegend(context as unknown as CanvasRenderingContext2D, box, colours, {
			scale: { kind: "linear", counts: [1, 1.4, 8], levels: [0, 0.5, 1] },
			palette: ["a", "b"],
			signed: false,
			unit: "",
			lines: ["p50", "p90", "p99", "mean"],
			lift: 8,
		});
		const at = (text: string) => written.find(([words]) => words.endsWith(text))?.[1] ?? Number.NaN;
		expect(at("I/Os") - at("mean")).toBeGreaterThanOrEqual(12);
		expect(written.filter(([words]) => words === "1")).toHaveLength(1);
	});

	it("is said under the pointer, in the list and in a report's page", () => {
		expect(counted(1, { y: "latency", weight: "count" })).toBe("1 I/O");
		expect(counted(12_345, { y: "latency" })).toBe("12 345 I/Os");
		expect(counted(2, { y: "utilization", weight: "count" })).toBe("2 readings");
		expect(counted(8192, { y: "size", weight: "bytes" })).toBe("8 KiB");
		expect(amount({ weight: "bytes" }, 3 * 2 ** 30)).toBe("3 GiB");
		expect(amount({ weight: "time" }, 1500)).toBe("1.5 µs");
		expect(amount({ weight: "count" }, 1)).toBe("1 I/O");
	});
});
