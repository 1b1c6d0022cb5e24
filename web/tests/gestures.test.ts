// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { EMPTY, graphOf, hover, SECOND, sheet } from "../src/api/worksheet";
import { Numbers } from "../src/canvas/numbers";
import { pointOf, spotAt } from "../src/worksheet/graph/data-position";
import type { Drawn } from "../src/worksheet/graph/drawing";
import { gestures } from "../src/worksheet/graph/gestures";
import { forget, stateOf } from "../src/worksheet/graph/state";
import { answer, START } from "./fed";

const told = vi.hoisted(() => ({ words: null as Record<string, string> | null }));
vi.mock("../src/canvas/tooltip", () => ({
	tooltip: (_: unknown, __: unknown, ___: unknown, words: Record<string, string> | null) => {
		told.words = words;
	},
}));

const values = Array.from({ length: 100 }, (_, second) => second);
const spec = graphOf("io.ops", "g1");

/** A graph of 60 s in 600 px, of which the plot begins at 100 px, and its canvas. */
function drawnGraph() {
	const content = new Numbers({
		answer: { ...answer("io.ops", 1), values },
		stacked: false,
		scale: "linear",
		highlights: [],
		mode: "highlight",
		colour: () => "#000000",
		words: String,
		faint: "#888888",
	});
	const drawn: Drawn = {
		box: { left: 100, top: 0, width: 600, height: 200 },
		span: { from: 0, to: 60 * SECOND },
		zoom: 1,
		content,
		spec,
		marks: spec.id,
		draw: () => undefined,
	};
	const listeners = new Map<string, (event: unknown) => void>();
	const cross = { hidden: true, style: { left: "", top: "" } };
	const canvas = {
		getBoundingClientRect: () => ({ left: 0, top: 0 }),
		addEventListener: (name: string, act: (event: unknown) => void) => listeners.set(name, act),
		removeEventListener: (name: string) => listeners.delete(name),
		setPointerCapture: () => undefined,
		matches: () => true,
		parentElement: { querySelector: () => cross },
	};
	const hands = gestures(drawn, canvas as unknown as HTMLCanvasElement);
	const pointer = (x: number) =>
		({ clientX: x, clientY: 100, button: 0, shiftKey: false, pointerId: 1 }) as unknown as PointerEvent;
	/** So many seconds more are recorded. */
	const goOn = (seconds: number) => {
		drawn.span = { from: drawn.span.from + seconds * SECOND, to: drawn.span.to + seconds * SECOND };
		drawn.painted?.();
	};
	const move = (x: number) => {
		listeners.get("pointermove")?.(pointer(x));
		hands.move(pointer(x));
	};
	const up = (x: number) => listeners.get("pointerup")?.(pointer(x));
	return { drawn, hands, cross, pointer, goOn, move, up };
}

const key = (name: string, shiftKey = false) =>
	({ key: name, shiftKey, preventDefault: () => undefined }) as unknown as KeyboardEvent;
const seconds = (time: number | null) => ((time ?? 0) - START) / SECOND;
const marked = () => {
	const { from, until } = stateOf(spec.id).mark.value ?? { from: 0, until: 0 };
	return [seconds(from), seconds(until)];
};

describe("while a graph follows", () => {
	beforeEach(() => {
		vi.stubGlobal("MouseEvent", class {});
		sheet.value = { ...EMPTY, graphs: [spec] };
	});
	afterEach(() => {
		vi.unstubAllGlobals();
		forget(spec.id);
		sheet.value = EMPTY;
	});

	it("a part begins at the moment at which the button went down", () => {
		const { hands, pointer, goOn, move } = drawnGraph();
		hands.down(pointer(301));
		move(330);
		expect(marked()).toEqual([20, 23]);
		goOn(4);
		// it reaches to the pointer, which rests
		expect(marked()).toEqual([20, 27]);
		move(350);
		expect(marked()).toEqual([20, 29]);
	});

	it("a drag over numbers shows its time at once, and with Ctrl marks it", () => {
		const { hands, pointer, move, up } = drawnGraph();
		hands.down({ ...pointer(301), ctrlKey: true } as PointerEvent);
		move(330);
		up(330);
		expect(marked()).toEqual([20, 23]);
		expect(sheet.value.time).toEqual(EMPTY.time);
		hands.down(pointer(301));
		move(330);
		up(330);
		expect(stateOf(spec.id).mark.value).toBe(null);
		expect(sheet.value.time).toEqual({ from: START + 20 * SECOND, until: START + 23 * SECOND });
	});

	it("a part that keys mark begins where they began, and the crosshair stays on its data", () => {
		const { hands, cross, goOn } = drawnGraph();
		hands.key(key("ArrowLeft"));
		expect(seconds(hover.value)).toBeCloseTo(29);
		goOn(5);
		expect([cross.hidden, cross.style.left]).toEqual([false, "340px"]);
		expect(seconds(hover.value)).toBeCloseTo(29);
		expect(told.words).toMatchObject({ time: expect.stringContaining("22:13:49") });
		hands.key(key("ArrowRight", true));
		goOn(5);
		hands.key(key("ArrowRight", true));
		expect(marked()).toEqual([29, 31]);
	});

	it("a crosshair that has left the plot is not seen, and comes back at its edge", () => {
		const { hands, cross, goOn } = drawnGraph();
		hands.key(key("ArrowLeft"));
		goOn(35);
		expect([cross.hidden, told.words]).toEqual([true, null]);
		hands.key(key("ArrowRight"));
		expect([cross.hidden, cross.style.left]).toEqual([false, "100px"]);
	});

	it("words beside a pointer at rest are those of what has come under it", () => {
		const { move, goOn } = drawnGraph();
		move(400);
		expect(told.words).toMatchObject({ time: expect.stringContaining("22:13:50") });
		goOn(7);
		expect(told.words).toMatchObject({ time: expect.stringContaining("22:13:57") });
		expect(seconds(hover.value)).toBeCloseTo(37);
	});

	it("places are the same there and back", () => {
		const { drawn } = drawnGraph();
		const [x, y] = pointOf(drawn, spotAt(drawn, [321, 77]));
		expect([Math.round(x), Math.round(y)]).toEqual([321, 77]);
	});
});
