// SPDX-License-Identifier: Apache-2.0
import type { LossesOfKind } from "../generated/maps";
import type { Content } from "./content";

/** Two parts of time of the same length; times shown are those of the first one. */
interface Times {
	from_ns: number;
	interval_ns: number;
	columns: number;
}

/** What contents of two parts of time have in common. */
export abstract class Compared implements Pick<Content, "compared" | "idle" | "lost" | "answered" | "hatched"> {
	readonly origin: number;
	readonly interval: number;
	readonly columns: number;
	readonly answered: [number, number];
	readonly hatched: [number, number][];
	readonly compared = true;
	readonly idle: [number, number][] = [];
	readonly lost: LossesOfKind[] = [];

	/** `gaps`: (first, one past the last) column that one of them lacks. */
	constructor({ from_ns, interval_ns, columns }: Times, gaps: readonly Readonly<[number, number]>[]) {
		this.origin = from_ns;
		this.interval = interval_ns;
		this.columns = columns;
		this.answered = [0, columns * interval_ns];
		this.hatched = gaps.map(([from, to]) => [from * interval_ns, to * interval_ns]);
	}
}
