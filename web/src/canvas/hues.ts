// SPDX-License-Identifier: Apache-2.0
/**
 * Colours of keys. Lightness of a map says how many, whoever they were; hue says whose they were, in shares. So the maps of
 * keys in their hues are the map of all, and one key alone has its hue at every lightness.
 *
 * Mixing is done in OKLab (Ottosson 2020), where equal steps look equal.
 */

/** Told apart by all kinds of sight. */
export const HUES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c00"];
export const REST = "#8a929c";

/** The colour of the key at a place: hues are repeated darker, then lighter; those beyond are grey. */
export function hueOf(place: number): string {
	const shade = SHADES[Math.floor(place / HUES.length)];
	const hue = HUES[place % HUES.length];
	if (!shade || !hue) return REST;
	const [lightness, a, b] = labOf(hue);
	return colourOf([shade[0] * lightness, shade[1] * a, shade[1] * b]);
}

/** Factors of lightness and of colourfulness. */
const SHADES = [
	[1, 1],
	[0.7, 0.8],
	[1.28, 0.6],
] as const;

export type Lab = readonly [lightness: number, a: number, b: number];

const linear = (byte: number) => {
	const share = byte / 255;
	return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
};
const encoded = (light: number) => {
	const share = light <= 0.0031308 ? 12.92 * light : 1.055 * Math.max(0, light) ** (1 / 2.4) - 0.055;
	return Math.round(255 * Math.min(1, Math.max(0, share)));
};

/** A colour `#rrggbb` in OKLab. */
export function labOf(colour: string): Lab {
	const [r, g, b] = [1, 3, 5].map((place) => linear(Number.parseInt(colour.slice(place, place + 2), 16))) as [
		number,
		number,
		number,
	];
	const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
	const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
	const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
	return [
		0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
		1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
		0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
	];
}

function light([lightness, a, b]: Lab): [number, number, number] {
	const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
	const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
	const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
	return [
		4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
		-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
		-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
	];
}

/** A colour of OKLab as a pixel: opaque, bytes r g b a from the lowest. */
export function pixelOf(lab: Lab): number {
	const [r, g, b] = light(lab).map(encoded) as [number, number, number];
	return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

/** A colour of OKLab as `#rrggbb`. */
export function colourOf(lab: Lab): string {
	const bytes = light(lab).map(encoded);
	return `#${bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** `#rrggbb` as a pixel. */
export function pixel(colour: string): number {
	const [r, g, b] = [1, 3, 5].map((place) => Number.parseInt(colour.slice(place, place + 2), 16)) as [
		number,
		number,
		number,
	];
	return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

/** Lightness of each step of a palette, drawn together so that every step has room for a hue. */
export function lightnesses(palette: readonly string[]): number[] {
	const found = palette.map((colour) => labOf(colour)[0]);
	const [least, most] = [Math.min(...found), Math.max(...found)];
	return found.map((value) => DIM + ((BRIGHT - DIM) * (value - least)) / Math.max(1e-9, most - least));
}

/** What belongs to no key, at each lightness of a palette. */
export const greys = (palette: readonly string[]): string[] =>
	lightnesses(palette).map((lightness) => colourOf([lightness, 0, 0]));

const DIM = 0.4;
const BRIGHT = 0.84;

/** The hue of a colour at each lightness: as strong as the colour where the screen can show it. */
export function rampOf(colour: string, steps: readonly number[]): Lab[] {
	const [, a, b] = labOf(colour);
	return steps.map((lightness) => {
		let [low, high] = [0, 1];
		if (shown([lightness, a, b])) low = 1;
		for (let i = 0; low < 1 && i < 12; i++) {
			const middle = (low + high) / 2;
			if (shown([lightness, middle * a, middle * b])) low = middle;
			else high = middle;
		}
		return [lightness, low * a, low * b];
	});
}

const shown = (lab: Lab) => light(lab).every((value) => value >= -1e-6 && value <= 1 + 1e-6);

/** Colours of one lightness mixed by weights; what is left of 1 is grey. */
export function mixed(lightness: number, parts: readonly (readonly [weight: number, colour: Lab])[]): Lab {
	let [a, b] = [0, 0];
	for (const [weight, colour] of parts) {
		a += weight * colour[1];
		b += weight * colour[2];
	}
	return [lightness, a, b];
}

/** Keys in the order in which they take their places: those that have a hue by name, so that it does not tell which answer came first. */
export function placed(keys: readonly string[]): string[] {
	const hued = SHADES.length * HUES.length;
	const by = (one: string, other: string) => one.localeCompare(other, "en", { numeric: true });
	return [...keys.slice(0, hued).toSorted(by), ...keys.slice(hued)];
}

/**
 * Places of keys among the hues. A key keeps its place as long as it is there, so that it keeps its colour while the order
 * changes. A new one takes the place that it has elsewhere (`others`), where that is one of the first `room` and free here; else the
 * lowest that is free here, and nowhere another key's as long as there is room.
 */
export function placesOf(
	keys: readonly string[],
	before: ReadonlyMap<string, number>,
	others: ReadonlyMap<string, number> = new Map(),
	room = SHADES.length * HUES.length,
): Map<string, number> {
	const kept = new Map(keys.flatMap((key) => (before.has(key) ? [[key, before.get(key) ?? 0]] : [])));
	const taken = new Set(kept.values());
	const put = (key: string, place: number) => {
		taken.add(place);
		kept.set(key, place);
	};
	for (const key of keys) {
		const place = others.get(key);
		if (!kept.has(key) && place !== undefined && place < room && !taken.has(place)) put(key, place);
	}
	const elsewhere = new Set(others.values());
	for (const key of keys) {
		if (kept.has(key)) continue;
		let free = 0;
		while (free < room && (taken.has(free) || elsewhere.has(free))) free++;
		if (free >= room) for (free = 0; taken.has(free); ) free++;
		put(key, free);
	}
	return kept;
}
