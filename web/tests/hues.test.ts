// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import vectors from "../../tests/vectors/hues.json";
import {
	colourOf,
	greys,
	HUES,
	hueOf,
	type Lab,
	labOf,
	large,
	lightnesses,
	mixed,
	pixel,
	pixelOf,
	placeOf,
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

	it("of names are those of pictures that Python makes", () => {
		expect(vectors.hues).toEqual(HUES);
		for (const { field, names, alone, places } of vectors.cases) {
			expect(names.map((name) => placeOf(field, name))).toEqual(alone);
			expect(Object.fromEntries(placesOf(field, names))).toEqual(places);
		}
	});

	it("of names are all different, and grey beyond", () => {
		expect(HUES.map((_, place) => hueOf(place))).toEqual(HUES);
		expect(new Set(HUES).size).toBe(12);
		expect([hueOf(12), hueOf(-1), hueOf(12, true)]).toEqual([REST, REST, REST]);
	});
});

/** Linear RGB as it is seen without red, green or blue cones (Machado, Oliveira and Fernandes 2009, severity 1). */
const SIGHTS = {
	normal: [1, 0, 0, 0, 1, 0, 0, 0, 1],
	protanopia: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
	deuteranopia: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
	tritanopia: [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
};
const linear = (colour: string) =>
	[1, 3, 5].map((at) => {
		const share = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
		return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
	});
const seen = (colour: string, sight: readonly number[]) => {
	const [r = 0, g = 0, b = 0] = linear(colour);
	const bytes = [0, 3, 6].map((row) => {
		const value = (sight[row] ?? 0) * r + (sight[row + 1] ?? 0) * g + (sight[row + 2] ?? 0) * b;
		const clipped = Math.min(1, Math.max(0, value));
		const byte = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055;
		return Math.round(255 * byte)
			.toString(16)
			.padStart(2, "0");
	});
	return labOf(`#${bytes.join("")}`);
};
const brightness = (colour: string) => {
	const [r = 0, g = 0, b = 0] = linear(colour);
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (one: string, other: string) => {
	const [low = 0, high = 0] = [brightness(one), brightness(other)].sort((a, b) => a - b);
	return (high + 0.05) / (low + 0.05);
};

describe.each([
	["light", false, "#ffffff", 2],
	["dark", true, "#14181d", 2.7],
] as const)("the hues on %s paper", (_, dark, paper, least) => {
	const hues = HUES.map((_, place) => hueOf(place, dark));
	it.each(Object.entries(SIGHTS))("are told apart with %s", (_, sight) => {
		const labs = hues.map((hue) => seen(hue, sight));
		for (const [i, one] of labs.entries())
			for (const other of labs.slice(0, i))
				expect(Math.hypot(...one.map((value, axis) => value - (other[axis] ?? 0)))).toBeGreaterThan(0.05);
	});
	it("that follow each other are told apart easily, with normal sight and without", () => {
		for (const [name, sight] of Object.entries(SIGHTS))
			for (let from = 0; from < HUES.length; from++)
				for (const [one, other] of [
					[0, 1],
					[0, 2],
					[0, 3],
				] as const) {
					const [a, b] = [one, other].map((at) => seen(hues[(from + at) % HUES.length] ?? "", sight)) as [Lab, Lab];
					const least = { normal: 0.1, tritanopia: 0.05 }[name] ?? 0.06;
					expect(Math.hypot(...a.map((value, axis) => value - (b[axis] ?? 0)))).toBeGreaterThan(least);
				}
	});
	it("stand out from it", () => {
		for (const hue of hues) expect(contrast(hue, paper)).toBeGreaterThan(least);
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
			fc.property(fc.integer({ min: 0, max: 11 }), fc.integer({ min: 1, max: 1000 }), fc.nat(5), (key, count, step) => {
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
	const keys = fc.uniqueArray(fc.string({ maxLength: 3 }), { maxLength: 14 });

	it("are those of the names, whatever else is there", () => {
		expect(placesOf("process", ["fio"]).get("fio")).toBe(placeOf("process", "fio"));
		expect(placeOf("op", "read")).toBe(0);
		expect(["", "é", "日本", "loop0"].map((name) => placeOf("device", name))).toEqual([1, 7, 3, 9]);
	});

	it("differ for names that differ in their last letter or in a number", () => {
		const disks = Array.from({ length: 10 }, (_, i) => `/dev/loop${i}`);
		expect(new Set(disks.map((name) => placeOf("device", name))).size).toBe(10);
		for (const names of [
			["sda", "sdb", "sdc", "sdd", "sde", "sdf"],
			["nvme0n1", "nvme1n1", "nvme2n1"],
			["10.0.0.8", "10.0.0.9", "10.0.0.10"],
		])
			for (const [i, name] of names.entries())
				expect((placeOf("device", name) - placeOf("device", names[0] ?? "") + HUES.length) % HUES.length).toBe(i);
	});

	it("are never shared, and kept by those that had one", () => {
		fc.assert(
			fc.property(keys, keys, (first, second) => {
				const before = placesOf("f", first);
				const after = placesOf("f", second, before);
				for (const found of [before, after]) {
					expect(new Set(found.values()).size).toBe(found.size);
					for (const place of found.values()) expect(HUES[place]).toBeDefined();
				}
				for (const [name, place] of before) expect(after.get(name)).toBe(place);
				expect(before.size).toBe(Math.min(HUES.length, first.length));
			}),
		);
	});

	it("go to what is large, the largest first", () => {
		const sized = [
			{ key: "a", value: 1 },
			{ key: "b", value: 5000 },
			{ key: "c", value: 40 },
			{ key: "d", value: null },
		];
		expect(large(sized)).toEqual(["b", "c"]);
		expect(large(Array.from({ length: 30 }, (_, i) => ({ key: `${i}`, value: 1 })))).toHaveLength(12);
		expect(large([])).toEqual([]);
	});
});
