// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import vectors from "../../tests/vectors/losses.json";
import { anyLost, type Lost, lostBars, lostIn, lostName, lostWords } from "../src/canvas/lost";
import { stripOf } from "../src/canvas/paint";
import type { HeatMapCounts, LossesOfKind } from "../src/generated/maps";

type Columns = [number, number][];
const KINDS = ["lost", "damaged", "unpaired"] as const;
const columns = fc.uniqueArray(
	fc.tuple(fc.integer({ min: 0, max: 39 }), fc.integer({ min: 0, max: 1000 })) as fc.Arbitrary<[number, number]>,
	{ selector: ([column]) => column, minLength: 1 },
);
const kinds: fc.Arbitrary<LossesOfKind[]> = fc
	.record({ lost: fc.option(columns), damaged: fc.option(columns), unpaired: fc.option(columns) })
	.map((found) =>
		KINDS.flatMap((kind) => (found[kind] ? [{ kind, count: sum(found[kind]), columns: found[kind] }] : [])),
	);

describe("losses", () => {
	it("add up by the cells that are shown, of whatever kind", () => {
		fc.assert(
			fc.property(kinds, fc.integer({ min: 1, max: 8 }), fc.integer({ min: 0, max: 10 }), (lost, joined, start) => {
				const shape = { first: start * joined, joined, columns: 3 };
				const [first, past] = [shape.first, shape.first + 3 * joined];
				const bars = lostBars(lost, shape);
				const inside = lost.flatMap((each) => each.columns).filter(([column]) => column >= first && column < past);
				expect([...bars.values()].reduce((all, one) => all + one, 0)).toBe(sum(inside));
				expect(bars.size).toBe(new Set(inside.map(([column]) => Math.floor(column / joined))).size);
				expect(sum(lostIn(lost, first, past))).toBe(sum(inside));
				const map = { lost } as HeatMapCounts;
				expect(stripOf(map)).toBe(lost.length > 0 ? 10 : 0);
			}),
		);
	});

	it("take no room where there are none, or nobody knows when", () => {
		expect(stripOf(null)).toBe(0);
		expect(stripOf({ lost: [] as LossesOfKind[] } as HeatMapCounts)).toBe(0);
		expect(anyLost([{ kind: "lost", count: 9, columns: [] }])).toBe(false);
	});

	it.each(vectors.lost as unknown as { kinds: Lost[]; words: string }[])("are told as $words", ({ kinds, words }) => {
		expect(lostWords(kinds)).toBe(words);
	});

	it("of some columns are told by kind", () => {
		const lost: LossesOfKind[] = [
			{
				kind: "lost",
				count: 1204,
				columns: [
					[2, 1200],
					[3, 4],
				],
			},
			{ kind: "damaged", count: 3, columns: [[3, 3]] },
			{ kind: "unpaired", count: 0, columns: [[9, 0]] },
		];
		expect(lostWords(lostIn(lost, 2, 4))).toBe("1 204 records were lost, 3 records could not be read");
		expect(lostWords(lostIn(lost, 3, 4))).toBe("4 records were lost, 3 records could not be read");
		expect(lostWords(lostIn(lost, 9, 10))).toBe("an unknown number of unmatched issue or completion events");
		expect(lostIn(lost, 4, 9)).toEqual([]);
	});

	it("give the strip its name", () => {
		const of = (...held: (typeof KINDS)[number][]) =>
			lostName(held.map((kind) => ({ kind, count: 1, columns: [[0, 1]] as Columns })));
		expect([of("lost"), of("damaged"), of("unpaired"), of("lost", "unpaired")]).toEqual([
			"lost",
			"unreadable",
			"unmatched",
			"losses",
		]);
	});
});

function sum(pairs: readonly (readonly [unknown, number])[]): number {
	return pairs.reduce((all, [, count]) => all + count, 0);
}
