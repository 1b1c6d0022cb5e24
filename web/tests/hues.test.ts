// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
	colourOf,
	greys,
	HUES,
	hueOf,
	labOf,
	lightnesses,
	mixed,
	pixel,
	pixelOf,
	placed,
	placesOf,
	REST,
	rampOf,
} from "../src/canvas/hues";
import { labOfCell, type Mixture } from "../src/canvas/mixture";

const colours = fc.integer({ min: 0, max: 0xffffff }).map((value) => `#${value.toString(16).padStart(6, "0")}`);
const PALETTE = ["#c4e6c3", "#7fcdbb", "#41a8c4", "#2a72b5", "#26408f", "#14163f"];

describe("colours", () => {
	it("are the same there and back", () => {
		fc.assert(
			fc.property(colours, (colour) => {
				expect(colourOf(labOf(colour))).toBe(colour);
				expect(pixelOf(labOf(colour))).toBe(pixel(colour));
			}),
		);
	});

	it("of white and black have no hue", () => {
		for (const [colour, lightness] of [
			["#ffffff", 1],
			["#000000", 0],
		] as const) {
			const [l, a, b] = labOf(colour);
			expect(l).toBeCloseTo(lightness, 4);
			expect(Math.hypot(a, b)).toBeLessThan(1e-4);
		}
	});

	it("of keys are all different, and grey beyond", () => {
		const found = Array.from({ length: 3 * HUES.length }, (_, place) => hueOf(place));
		expect(found.slice(0, HUES.length)).toEqual(HUES);
		expect(new Set(found).size).toBe(found.length);
		expect(hueOf(3 * HUES.length)).toBe(REST);
		expect(hueOf(-1)).toBe(REST);
	});
});

describe("ramps", () => {
	const steps = lightnesses(PALETTE);

	it("keep the order of a palette's lightness", () => {
		expect(steps).toEqual(steps.toSorted((one, other) => other - one));
		expect(lightnesses(PALETTE.toReversed())).toEqual(steps.toReversed());
	});

	it("can be shown: as pixels they keep their lightness and their hue", () => {
		for (const hue of HUES) {
			const [, a, b] = labOf(hue);
			for (const [i, lab] of rampOf(hue, steps).entries()) {
				const shown = labOf(colourOf(lab));
				expect(shown[0]).toBeCloseTo(steps[i] ?? 0, 1.8);
				expect(Math.atan2(lab[2], lab[1])).toBeCloseTo(Math.atan2(b, a), 6);
				expect(Math.hypot(lab[1], lab[2])).toBeLessThanOrEqual(Math.hypot(a, b) + 1e-9);
			}
		}
	});

	it("without a key are grey", () => {
		for (const grey of greys(PALETTE)) {
			const [, a, b] = labOf(grey);
			expect(Math.hypot(a, b)).toBeLessThan(0.01);
		}
	});
});

const counts = fc.array(fc.integer({ min: 0, max: 1000 }), { minLength: 1, maxLength: 7 });

describe("maps in hues", () => {
	const lightness = lightnesses(PALETTE);
	const mixture = (parts: number[], rest: number): Mixture => ({
		lightness,
		all: Float64Array.of(parts.reduce((sum, each) => sum + each, rest)),
		parts: parts.map((count, i) => ({ counts: Float64Array.of(count), ramp: rampOf(hueOf(i), lightness) })),
	});

	it("are as light as the map of all, whoever was there", () => {
		fc.assert(
			fc.property(counts, fc.nat(1000), fc.integer({ min: 0, max: 5 }), (parts, rest, step) => {
				expect(labOfCell(mixture(parts, rest), 0, step)[0]).toBe(lightness[step]);
			}),
		);
	});

	it("have a key's own hue where it was alone, and none where none of them was", () => {
		fc.assert(
			fc.property(fc.integer({ min: 0, max: 6 }), fc.integer({ min: 1, max: 1000 }), fc.nat(5), (key, count, step) => {
				const parts = HUES.map((_, i) => (i === key ? count : 0));
				const [, a, b] = labOfCell(mixture(parts, 0), 0, step);
				const ramp = rampOf(hueOf(key), lightness)[step] ?? [0, 0, 0];
				expect([a, b]).toEqual([ramp[1], ramp[2]]);
				const [, c, d] = labOfCell(mixture([0, 0], count), 0, step);
				expect([c, d]).toEqual([0, 0]);
			}),
		);
	});

	it("move towards a key's hue as its share grows", () => {
		const ramp = rampOf(hueOf(0), [0.6])[0] ?? [0, 0, 0];
		fc.assert(
			fc.property(
				fc.double({ min: 0, max: 1, noNaN: true }),
				fc.double({ min: 0, max: 1, noNaN: true }),
				(one, other) => {
					const strength = (share: number) => {
						const [, a, b] = mixed(0.6, [[share, ramp]]);
						return Math.hypot(a, b);
					};
					expect(strength(Math.max(one, other))).toBeGreaterThanOrEqual(strength(Math.min(one, other)));
				},
			),
		);
	});
});

describe("places among the hues", () => {
	const keys = fc.uniqueArray(fc.string({ maxLength: 3 }), { maxLength: 12 });

	it("are those that keys have elsewhere, and never those of others there while there is room", () => {
		fc.assert(
			fc.property(keys, keys, (there, here) => {
				const others = placesOf(there, new Map());
				const found = placesOf(here, new Map(), others);
				expect(new Set(found.values()).size).toBe(here.length);
				const taken = new Set(others.values());
				for (const [key, place] of found)
					if (others.has(key)) expect(place).toBe(others.get(key));
					else if (new Set([...there, ...here]).size <= 3 * HUES.length) expect(taken.has(place)).toBe(false);
			}),
		);
	});

	it("are taken by name by those that have a hue, whatever comes first", () => {
		expect(placed(["loop10", "sda", "loop2"])).toEqual(["loop2", "loop10", "sda"]);
		const many = Array.from({ length: 30 }, (_, i) => `k${30 - i}`);
		expect(placed(many).slice(-9)).toEqual(many.slice(-9));
		expect([...placed(many)].sort()).toEqual([...many].sort());
	});

	it("stay among those that can be told apart, whatever is elsewhere", () => {
		const others = placesOf("abcdefghijklmnopqrstuvwxyz".split(""), new Map());
		const found = placesOf(["z", "b", "1", "2", "3", "4", "5"], new Map(), others, 7);
		expect(found.get("b")).toBe(1);
		expect([...found.values()].sort()).toEqual([0, 1, 2, 3, 4, 5, 6]);
	});

	it("are kept as long as a key is there, and are never shared", () => {
		fc.assert(
			fc.property(keys, keys, (before, after) => {
				const first = placesOf(before, new Map());
				expect([...first.values()]).toEqual(before.map((_, i) => i));
				const second = placesOf(after, first);
				expect([...second.keys()].sort()).toEqual([...after].sort());
				expect(new Set(second.values()).size).toBe(after.length);
				for (const key of after) if (first.has(key)) expect(second.get(key)).toBe(first.get(key));
			}),
		);
	});
});
