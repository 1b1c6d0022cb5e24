// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, it } from "vitest";
import { graphOf } from "../src/api/worksheet";
import type { Content } from "../src/canvas/content";
import { cursorOf, dragMark, gripAt, handlesOf, moveMark, stepMark } from "../src/worksheet/graph/brush";
import type { Drawn } from "../src/worksheet/graph/drawing";
import { forget, type Mark, stateOf } from "../src/worksheet/graph/state";

const spec = graphOf("io.ops[latency]", "g1");
const cells = { first: 0, joined: 2, edges: [0, 10, 20, 30, 50] };
const content = { origin: 1000, interval: 5, axis: { low: 0, high: 50, scale: "linear" }, cells } as unknown as Content;
/** 100 ns in 500 px, 50 values in 250 px: a cell is 50 px wide, and its lowest rows 50 px high. */
const drawn: Drawn = {
	box: { left: 10, top: 20, width: 500, height: 250 },
	span: { from: 0, to: 100 },
	zoom: 1,
	content,
	spec,
	marks: spec.id,
	draw: () => undefined,
};
const mark: Mark = { from: 1020, until: 1040, low: 10, high: 30, mapped: true };
/** On the canvas: 110 to 210 and 120 to 220. */
const [left, right, top, bottom] = [110, 210, 120, 220];
const move = { x: 0, y: 0 } as const;

describe("a mark", () => {
	afterEach(() => forget(spec.id));

	it("is taken by its edges and corners, and by its inside", () => {
		expect(gripAt(drawn, [left, top], false)).toBe(null);
		stateOf(spec.id).mark.value = mark;
		expect(gripAt(drawn, [left - 4, 170], false)).toEqual({ x: -1, y: 0 });
		expect(gripAt(drawn, [right + 4, top + 2], false)).toEqual({ x: 1, y: 1 });
		expect(gripAt(drawn, [160, bottom + 5], false)).toMatchObject({ y: -1 });
		expect(gripAt(drawn, [160, 170], false)).toMatchObject({ x: 0 });
		expect(gripAt(drawn, [left - 9, 170], false)).toBe(null);
		// with Ctrl another part is marked; in numbers it is needed, since a drag zooms
		expect(gripAt(drawn, [160, 170], true)).toBe(null);
		stateOf(spec.id).mark.value = { ...mark, mapped: false };
		expect([gripAt(drawn, [160, 170], false), gripAt(drawn, [left, 30], true)]).toEqual([null, { x: -1, y: 0 }]);
		expect([cursorOf({ x: 1, y: 1 }), cursorOf({ x: -1, y: 1 }), cursorOf(move)]).toEqual([
			"nesw-resize",
			"nwse-resize",
			"move",
		]);
	});

	it("has eight handles, and two where its values have no limits", () => {
		expect(handlesOf(drawn, mark)).toHaveLength(8);
		expect(handlesOf(drawn, mark)).toContainEqual([right, top]);
		expect(handlesOf(drawn, { ...mark, mapped: false })).toEqual([
			[left, 145],
			[right, 145],
		]);
	});

	it("is resized by whole cells, and a side stops before the other", () => {
		expect(dragMark(drawn, mark, { x: 1, y: 0 }, [70, 99])).toEqual({ ...mark, until: 1050 });
		expect(dragMark(drawn, mark, { x: -1, y: 0 }, [900, 0])).toEqual({ ...mark, from: 1030 });
		expect(dragMark(drawn, mark, { x: 0, y: 1 }, [0, -90])).toEqual({ ...mark, high: 50 });
		expect(dragMark(drawn, mark, { x: 0, y: 1 }, [0, 900])).toEqual({ ...mark, high: 20 });
		expect(dragMark(drawn, mark, { x: 0, y: -1 }, [0, 900])).toEqual({ ...mark, low: 0 });
	});

	it("is moved with its size in rows, inside of the axis", () => {
		expect(dragMark(drawn, mark, move, [-50, 0])).toEqual({ ...mark, from: 1010, until: 1030 });
		expect(dragMark(drawn, mark, move, [0, 900])).toEqual({ ...mark, low: 0, high: 20 });
		expect(stepMark(content, mark, move, 0, 9)).toEqual({ ...mark, low: 20, high: 50 });
	});

	it("is moved and resized by keys", () => {
		const state = stateOf(spec.id).mark;
		moveMark(drawn, 1, 0, false);
		expect(state.value).toBe(null);
		state.value = mark;
		moveMark(drawn, 1, 0, false);
		moveMark(drawn, 0, -1, false);
		expect(state.value).toEqual({ ...mark, from: 1030, until: 1050, low: 0, high: 20 });
		moveMark(drawn, -1, 0, true);
		moveMark(drawn, 0, 1, true);
		expect(state.value).toEqual({ ...mark, from: 1030, until: 1040, low: 0, high: 30 });
	});
});
