// SPDX-License-Identifier: Apache-2.0
import type { DrawnMap, Layers } from "../generated/api";
import type { SparseCounts } from "../generated/maps";

/** Heat maps in this form come as arrays of numbers, which are read where they lie; docs/reference/api.md describes it byte by byte. */
export const MEDIA_TYPE = "application/vnd.iolab.heat";

const MAGIC = "ioHm";
const HEAD = 24;
/** Counts are 64 bits wide. */
const WIDE = 1;

/** A map that is ready to be drawn, with or without its layers. */
type Drawn = (DrawnMap | Layers) & { sizes: number[] };

/** A map from its bytes. Throws where these are no such map, whole and in order. */
export function decodeHeat(buffer: ArrayBuffer): DrawnMap | Layers {
	const view = new DataView(buffer);
	if (buffer.byteLength < HEAD || text(buffer, 0, 4) !== MAGIC) throw damaged("no map");
	if (view.getUint8(4) !== 1) throw damaged("a map in a newer form: reload the page");
	const wide = (view.getUint8(5) & WIDE) !== 0;
	const [cells, buckets, length] = [view.getUint32(8, true), view.getUint32(12, true), view.getUint32(16, true)];
	const first = HEAD + length + 16 * buckets;
	const columns = first + (wide ? 8 : 4) * cells;
	if (length % 8 !== 0 || buffer.byteLength !== columns + 8 * cells) throw damaged("a map that was cut");
	const head = headOf(text(buffer, HEAD, length));
	const whole = {
		counts: wide ? narrow(new BigUint64Array(buffer, first, cells)) : new Uint32Array(buffer, first, cells),
		columns: new Int32Array(buffer, columns, cells),
		rows: new Uint32Array(buffer, columns + 4 * cells, cells),
	};
	const { sizes, ...answer } = head;
	const made = answer.kind === "layers" ? answer.map : answer;
	if (sizes.reduce((sum, size) => sum + size, 0) !== cells) throw damaged("a map with parts that don't add up");
	const [map] = made.group?.maps ?? [];
	const holders = map ? [map, ...map.dimensions.flatMap(({ parts }) => parts)] : [];
	if (sizes.length !== holders.length) throw damaged("a map with parts that don't add up");
	let place = 0;
	for (const [i, holder] of holders.entries()) {
		const past = place + (sizes[i] ?? 0);
		holder.cells = {
			starts: startsOf(whole.columns.subarray(place, past), made.group?.columns ?? 0),
			rows: whole.rows.subarray(place, past),
			counts: whole.counts.subarray(place, past),
		};
		place = past;
	}
	return answer;
}

/** Where the cells of each column begin. */
function startsOf(columns: Int32Array, count: number): SparseCounts["starts"] {
	const starts = new Uint32Array(count + 1);
	let column = 0;
	for (let k = 0; k < columns.length; k++) {
		const now = columns[k] ?? 0;
		if (now < column || now >= count) throw damaged("a map with columns out of order");
		while (column < now) starts[++column] = k;
	}
	while (column < count) starts[++column] = columns.length;
	return starts;
}

function headOf(json: string): Drawn {
	let found: Drawn;
	try {
		found = JSON.parse(json) as Drawn;
	} catch {
		throw damaged("a map without a head");
	}
	if ((found.kind !== "map" && found.kind !== "layers") || !Array.isArray(found.sizes)) throw damaged("no map to draw");
	return found;
}

/** Counts as numbers: exact up to 2^53. */
const narrow = (counts: BigUint64Array) => Float64Array.from(counts, Number);

const text = (buffer: ArrayBuffer, from: number, length: number) =>
	new TextDecoder().decode(new Uint8Array(buffer, from, length));

const damaged = (what: string) => new Error(`The service answered with ${what}.`);
