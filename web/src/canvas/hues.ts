// SPDX-License-Identifier: Apache-2.0
/**
 * Colours of keys. The lightness of a map shows the total count; the hue shows the shares of the keys. So the maps of keys in their
 * hues add up to the map of all, and one key alone has its hue at every lightness.
 *
 * Mixing is done in OKLab (Ottosson 2020), where equal steps look equal.
 */

/**
 * The colours of names: any two of them differ by at least 0.09 in OKLab for normal sight and with each kind of colour blindness
 * (Machado et al. 2009, full severity), and those that follow each other by much more. Found by search; a test measures it.
 */
export const HUES = [
	"#2896f5",
	"#e6ac3d",
	"#946db1",
	"#385805",
	"#e57766",
	"#9cb4fe",
	"#8d1e72",
	"#455ee1",
	"#7e6f08",
	"#4ec5b1",
	"#c24173",
	"#6928b0",
] as const;
/** What has no colour of its own: values that are negligible, or too many. */
export const REST = "#8a929c";

/** The colour at a place among the hues, grey where there is none. On a dark background colours are lighter. */
export function hueOf(place: number, dark = false): string {
	const hue = HUES[place];
	if (!hue) return REST;
	if (!dark) return hue;
	const [lightness] = labOf(hue);
	return colourOf(rampOf(hue, [DARKEST + (1 - DARKEST / 0.85) * lightness])[0] ?? labOf(hue));
}

/** How light a black would become on a dark background; a colour of 0.85 stays as it is. */
const DARKEST = 0.25;

/** Values that have a colour by convention, so that reads and writes look alike in all worksheets. */
const USUAL: Record<string, Record<string, number>> = {
	op: { read: 0, write: 1, flush: 10, sync: 2, trim: 9, other: 8 },
	direction: { in: 0, out: 1 },
	percentiles: { mean: 1, p50: 0, p90: 7, p99: 11, "p99.9": 6, max: 10 },
};

/**
 * The default place of a name among the hues. Names that differ in their last letter, or in a number, have different places:
 * sda, sdb and sdc have three that follow each other, and so have nvme0n1, nvme1n1 and nvme2n1.
 */
export function placeOf(field: string, name: string): number {
	const usual = USUAL[field]?.[name];
	if (usual !== undefined) return usual;
	// FNV-1a of all but digits and the last letter
	let hash = 0x811c9dc5;
	const letters = new TextEncoder().encode(name.replaceAll(/[0-9]/g, ""));
	for (const byte of letters.subarray(0, -1)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
	const numbers = (name.match(/[0-9]+/g) ?? []).map((digits) => Number(BigInt(digits) % BigInt(HUES.length)));
	return numbers.reduce((sum, number) => sum + number, hash + (letters.at(-1) ?? 0)) % HUES.length;
}

/**
 * The places of names, the largest first: each has its default place, or the next free one. Names that have a place in `before`
 * keep it. If all places are in use, a name has none.
 */
export function placesOf(
	field: string,
	names: readonly string[],
	before: ReadonlyMap<string, number> = new Map(),
): Map<string, number> {
	const places = new Map(before);
	const taken = new Set(places.values());
	for (const name of names) {
		if (places.has(name) || taken.size >= HUES.length) continue;
		let place = placeOf(field, name);
		while (taken.has(place)) place = (place + 1) % HUES.length;
		places.set(name, place);
		taken.add(place);
	}
	return places;
}

/** A value so small a share of all is negligible: it is drawn in less than a pixel or two. */
const NEGLIGIBLE = 0.005;

/** The names that deserve a colour, the largest first: no more than there are. */
export function large(sized: readonly { key: string; value: number | null }[]): string[] {
	const all = sized.reduce((sum, { value }) => sum + Math.max(0, value ?? 0), 0);
	return sized
		.filter(({ value }) => (value ?? 0) > NEGLIGIBLE * all)
		.toSorted((one, other) => (other.value ?? 0) - (one.value ?? 0) || (one.key < other.key ? -1 : 1))
		.slice(0, HUES.length)
		.map(({ key }) => key);
}

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

/** Colours of one lightness mixed by weights; the rest up to 1 is grey. */
export function mixed(lightness: number, parts: readonly (readonly [weight: number, colour: Lab])[]): Lab {
	let [a, b] = [0, 0];
	for (const [weight, colour] of parts) {
		a += weight * colour[1];
		b += weight * colour[2];
	}
	return [lightness, a, b];
}
