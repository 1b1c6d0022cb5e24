// SPDX-License-Identifier: Apache-2.0
import { beforeEach, describe, expect, it } from "vitest";
import { type GraphSpec, graphOf, sheet, USUAL_HEIGHT } from "../src/api/worksheet";
import { type Frame, HEADROOM, MARGINS, marginsOf, paintIdle, paintValues, seenIdle } from "../src/canvas/frame";
import { heightOf, screenHeight, windowHeight } from "../src/worksheet/arrangement";
import { stateOf } from "../src/worksheet/graph/state";

const BOX = { left: 84, top: 6, width: 400, height: 200 };
const SPAN = { from: 0, to: 4000 };

/** A context that notes the rectangles that are drawn. */
function noted() {
	const rectangles: { stroked: number[][]; filled: number[][] } = { stroked: [], filled: [] };
	const context = new Proxy({} as Record<string, unknown>, {
		get: (known, name) => {
			if (name === "strokeRect") return (...args: number[]) => rectangles.stroked.push(args);
			if (name === "fillRect") return (...args: number[]) => rectangles.filled.push(args);
			if (name === "measureText") return () => ({ width: 40 });
			return known[String(name)] ?? (() => undefined);
		},
		set: (known, name, value) => {
			known[String(name)] = value;
			return true;
		},
	});
	return { context: context as unknown as CanvasRenderingContext2D, rectangles };
}

const frame = { box: BOX, span: SPAN, colours: {} } as Frame;

describe("the border of a plot", () => {
	it("is apart from the highest row, and within the canvas", () => {
		const { context, rectangles } = noted();
		paintValues(context, frame, { low: 0, high: 1, scale: "linear" }, []);
		const [[left, top, width, height] = []] = rectangles.stroked;
		expect(top).toBeLessThan(BOX.top - 3);
		expect(top).toBeGreaterThanOrEqual(0);
		expect((top ?? 0) + (height ?? 0)).toBe(BOX.top + BOX.height + 0.5);
		expect([left, width]).toEqual([BOX.left - 0.5, BOX.width + 1]);
		expect(HEADROOM).toBeLessThan(MARGINS.top);
	});

	it("has labels that end within the canvas", () => {
		const { context } = noted();
		const labels: unknown[][] = [];
		Object.assign(context, { fillText: (...args: unknown[]) => labels.push(args) });
		paintValues(context, frame, { low: 0, high: 2, scale: "linear" }, [{ value: 1, label: "768 MiB/s" }]);
		const [[text, x, , width] = []] = labels;
		expect(text).toBe("768 MiB/s");
		expect(Number(x) - Number(width)).toBeGreaterThanOrEqual(0);
	});

	it("leaves a telephone most of its width", () => {
		const { left, right } = marginsOf(345);
		expect(345 - left - right).toBeGreaterThan(0.65 * 345);
		expect(marginsOf(1000)).toEqual(MARGINS);
	});
});

describe("time without I/O", () => {
	it("is shaded where it is wide enough to be no stripe, neighbours as one", () => {
		const spans: [number, number][] = [
			[0, 50],
			[100, 140],
			[140, 190],
			[500, 520],
		];
		// ten of the time are a pixel
		expect(seenIdle(spans, frame)).toEqual([[100, 190]]);
		expect(seenIdle(spans, { box: BOX, span: { from: 0, to: 400 } })).toHaveLength(2);
		const { context, rectangles } = noted();
		paintIdle(context, frame, spans);
		expect(rectangles.filled).toEqual([[94, BOX.top, 9, BOX.height]]);
	});
});

describe("the height of graphs", () => {
	const shown = (...graphs: GraphSpec[]) => {
		sheet.value = { ...sheet.value, graphs, compare: null };
	};
	beforeEach(() => {
		screenHeight.value = 1700;
		windowHeight.value = 2160;
	});

	it("shares a large screen among few graphs", () => {
		const [one, two, three] = ["io.ops", "io.bytes", "io.ops[op]"].map((name) => graphOf(name, name));
		if (!one || !two || !three) throw new Error("no graphs");
		shown(one);
		expect(heightOf(one)).toBe(1600);
		shown(one, two);
		expect(heightOf(one)).toBe((2160 - 190) / 2 - 110);
		shown({ ...one, width: 1 }, { ...two, width: 1 }, three);
		expect(heightOf(one)).toBe((2160 - 190) / 2 - 110);
		screenHeight.value = 0;
		expect(heightOf(one)).toBe(Math.round(0.22 * 2160));
		windowHeight.value = 800;
		expect(heightOf(one)).toBe(USUAL_HEIGHT);
		expect(heightOf({ ...one, height: 120 })).toBe(120);
	});

	it("leaves room for what is open below a graph alone", () => {
		const one = graphOf("io.ops[latency]", "lone");
		shown(one);
		screenHeight.value = 600;
		expect(heightOf(one)).toBe(600);
		stateOf(one.id).subSecond.value = true;
		expect(heightOf(one)).toBe(330);
		stateOf(one.id).subSecond.value = false;
		expect(heightOf({ ...one, hierarchy: "tree" })).toBe(330);
	});
});
