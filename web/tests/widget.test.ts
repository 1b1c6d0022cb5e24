// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { sameSelection, scopeStyles, selectionOf } from "../src/widget/selection";

describe("a selection of a notebook's map", () => {
	it("is in whole numbers, null for none", () => {
		expect(selectionOf(null)).toBe(null);
		const area = { from: 1e9 + 1e-7, to: 2e9 - 1e-7, low: 90112.0000001, high: 3145728 };
		expect(selectionOf(area)).toEqual({ from: 1e9, until: 2e9, low: 90112, high: 3145728 });
	});

	it("is sent only when it is another one", () => {
		const one = { from: 0, until: 1, low: 2, high: 3 };
		expect(sameSelection(one, { ...one })).toBe(true);
		expect(sameSelection(one, { ...one, high: 4 })).toBe(false);
		expect([sameSelection(null, null), sameSelection(one, null), sameSelection(null, one)]).toEqual([
			true,
			false,
			false,
		]);
	});
});

describe("styles in a shadow tree", () => {
	it("are those of its host instead of the document", () => {
		expect(
			scopeStyles(":root{--a:1}:root[data-theme=dark]{--a:2}html{x:y}body{margin:0}tbody{z:1}.maps body-like{q:1}"),
		).toBe(":host{--a:1}:host([data-theme=dark]){--a:2}:host{x:y}:host{margin:0}tbody{z:1}.maps body-like{q:1}");
	});
});
