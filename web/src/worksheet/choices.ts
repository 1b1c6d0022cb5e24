// SPDX-License-Identifier: Apache-2.0
import type { GraphSpec } from "../api/worksheet";
import type { StatisticFacts } from "../generated/api";
import { filtered } from "../lib/names";
import { titleOf } from "../lib/titles";

/** Something that can be added: a statistic by a field, "" for the plain number. */
export interface Choice {
	statistic: string;
	group: string;
	name: string;
	field: string;
	kind: "series" | "stack" | "heat";
	about: string;
	/** Fields that can be held to a value. */
	filters: readonly string[];
	/** Why it isn't available; "" if it is. */
	why: string;
	/** How its graph looks at first, where that is not the usual. */
	look?: Partial<GraphSpec>;
}

/** A value of a field that occurs in the recording. */
export interface KnownValue {
	field: string;
	value: string;
}

/** Everything that the catalogue offers, maps last within a statistic. */
export function choicesOf(catalogue: readonly StatisticFacts[]): Choice[] {
	return catalogue.flatMap((each) => {
		const shared = {
			group: groupOf(each.name),
			name: each.name,
			about: each.about,
			filters: each.filters,
			why: each.available ? "" : each.why_not,
		};
		const fields = each.breakdowns.toSorted((a, b) => Number(a.kind === "heat") - Number(b.kind === "heat"));
		return [
			{ ...shared, statistic: each.name, field: "", kind: "series" as const },
			...fields.map(({ field, kind }) => ({ ...shared, statistic: `${each.name}[${field}]`, field, kind })),
			...each.lacking.map(({ field, kind, why_not }) => ({
				...{ ...shared, why: why_not },
				...{ statistic: `${each.name}[${field}]`, field, kind },
			})),
		];
	});
}

/** The part before the dot. */
export const groupOf = (name: string): string => name.split(".")[0] ?? name;

/** Other words for a field. */
const OF_FIELD: Record<string, string> = {
	device: "disk drive volume",
	op: "operation type",
	process: "program command application task",
	latency: "response time slow await delay percentile percentiles tail p50 p90 p95 p99 p99.9",
	queue: "queueing wait scheduler",
	offset: "random sequential position address lba seek",
	size: "block request iosize bs",
	client: "host address user",
	peer: "host address client",
	file: "path name",
	utilization: "busy util",
};
/** Other words for what is measured, by the last part of a name. */
const OF_MEASURE: Record<string, string> = {
	ops: "iops operations rate count",
	bytes: "throughput bandwidth bw mb/s mbps",
	queue: "queue depth qd avgqu inflight",
	utilization: "utilization util busy load",
	capacity: "space used free full",
};

/** Operations, which hold a statistic to them by their names alone. */
const OPS = ["read", "write", "trim", "flush", "sync"];

/**
 * A statistic with the typed name is first, then those that begin with it, then those in which every word is found: first those with a part that
 * is or begins with one. A word that is an operation, or begins one, holds the others to it.
 */
export function search(choices: readonly Choice[], typed: string, values: readonly KnownValue[] = []): Choice[] {
	const name = typed.trim().toLowerCase();
	const words = wordsIn(name);
	const { near, far } = ofValues(choices, words, values);
	return [...near, ...looksOf(choices, name, words), ...ofNames(choices, name, words), ...far];
}

const wordsIn = (text: string): string[] => text.split(/[\s[\],=]+|\.(?!9)/).filter(Boolean);

/** Values of the recording that a word names: statistics of that value alone. Those that begin with what was typed come first. */
function ofValues(
	choices: readonly Choice[],
	words: readonly string[],
	values: readonly KnownValue[],
): { near: Choice[]; far: Choice[] } {
	const found: { near: Choice[]; far: Choice[] } = { near: [], far: [] };
	for (const { field, value } of values) {
		const word = words.find((each) => each.length > 1 && value.toLowerCase().includes(each));
		if (!word) continue;
		const others = words.filter((each) => each !== word);
		const usual = choices.filter((each) => OF_VALUE.includes(each.statistic));
		const suitable = (others.length > 0 ? matching(choices, others) : usual).filter(
			(each) => !each.why && each.field !== field && each.filters.includes(field),
		);
		const place = value.toLowerCase().startsWith(word) && word.length > 2 ? found.near : found.far;
		const made = suitable.slice(0, OF_VALUE.length).map((each) => ({
			...each,
			statistic: filtered(each.statistic, field, value),
			about: `${each.about} (${field} ${value} alone)`,
		}));
		if (place.length < MOST_OF_VALUES) place.push(...made);
	}
	return found;
}

/** What is offered of a value when nothing else was typed. */
const OF_VALUE = ["io.ops[latency]", "io.bytes", "file.ops[latency]", "file.bytes[file]", "io.utilization", "io.queue"];
const MOST_OF_VALUES = 12;

/** A map by another field ("latency by disk"), and as percentiles ("p99"). */
function looksOf(choices: readonly Choice[], name: string, words: readonly string[]): Choice[] {
	const maps = choices.filter((each) => each.kind === "heat" && !each.why);
	const percentile = words.find((word) => /^p\d\d|^percentile/.test(word));
	if (percentile) {
		const others = words.filter((word) => word !== percentile);
		return matching(maps, others.length > 0 ? others : ["latency"])
			.filter((each) => each.field === "latency" && each.name.endsWith(".ops"))
			.map((each) => ({
				...each,
				look: { painter: "percentiles" },
				about: "p50, p90, p99, p99.9 and maximum over time",
			}));
	}
	const [, what = "", by = ""] = /^(.+)\s+(?:by|per)\s+(\S+)$/.exec(name) ?? [];
	if (!by) return [];
	const coloured = matching(maps, wordsIn(what)).flatMap((each) => {
		const field = choices.find(
			(other) =>
				other.name === each.name &&
				other.kind === "stack" &&
				!other.why &&
				[other.field, ...alsoOf({ ...other, name: "" }).split(" ")].some((word) => word?.startsWith(by)),
		)?.field;
		if (!field) return [];
		return [{ ...each, look: { by: field, mode: "rainbow" as const }, about: `${each.about}; by ${field} in colour` }];
	});
	return coloured.filter((each) => each.name.endsWith(".ops")).slice(0, 4);
}

/** Statistics by their names and words. */
function ofNames(choices: readonly Choice[], name: string, words: readonly string[]): Choice[] {
	const op = OPS.find((each) => words.some((word) => word.length > 1 && each.startsWith(word)));
	const others = words.filter((word) => !op?.startsWith(word));
	const nearness = words.includes(op ?? "") ? 2 : 1;
	return [
		...matching(choices, words).map((choice) => ({ choice, rank: rank(choice, words, name) })),
		...matching(op ? choices.flatMap((choice) => heldTo(choice, op)) : [], others).map((choice) => ({
			choice,
			rank: rank(choice, others, name) - nearness,
		})),
	]
		.map((each, place) => ({ ...each, place }))
		.sort((a, b) => a.rank - b.rank || a.place - b.place)
		.map(({ choice }) => choice);
}

/** A choice of a single operation; null if it can't be restricted to one. */
function heldTo(choice: Choice, op: string): Choice[] {
	if (!choice.filters.includes("op") || choice.field === "op") return [];
	return [{ ...choice, statistic: filtered(choice.statistic, "op", op), about: `${choice.about} (${op} alone)` }];
}

const alsoOf = ({ field, name }: Pick<Choice, "field" | "name">): string =>
	[OF_FIELD[field], OF_MEASURE[name.split(".").at(-1) ?? ""]].filter(Boolean).join(" ");

/** Those in which every word occurs. */
function matching(choices: readonly Choice[], words: readonly string[]): Choice[] {
	const text = (choice: Choice) => {
		const { statistic, field, kind, about } = choice;
		return `${statistic} by ${field || "plain"} ${alsoOf(choice)} ${titleOf(statistic)} ${kind} ${about}`.toLowerCase();
	};
	return choices.filter((choice) => words.every((word) => text(choice).includes(word)));
}

/** The lower the better it suits what was typed. */
function rank(choice: Choice, words: readonly string[], name: string): number {
	const statistic = choice.statistic.toLowerCase();
	if (statistic === name) return Number.NEGATIVE_INFINITY;
	const parts = [...statistic.split(/[[\].=]+/), ...alsoOf(choice).split(" ")].filter(Boolean);
	const near = (word: string) => (parts.includes(word) ? 2 : parts.some((part) => part.startsWith(word)) ? 1 : 0);
	const begins = statistic.startsWith(name) ? 50 : 0;
	return words.reduce((sum, word) => sum - near(word), (choice.why ? 100 : 0) - begins);
}

/** First statistics, most useful first. */
const FIRST = [
	"io.ops[latency]",
	"io.ops[op]",
	"io.bytes[process]",
	"io.ops[offset]",
	"file.ops[latency]",
	"file.bytes[file]",
];

/** What a first look begins with, as far as it is recorded; other maps where little of it is. */
export function suggestions(choices: readonly Choice[]): Choice[] {
	const can = choices.filter((each) => !each.why);
	const usual = FIRST.flatMap((name) => can.filter((each) => each.statistic === name));
	const others = can.filter((each) => each.kind !== "series" && !usual.includes(each));
	const more = others.toSorted((a, b) => Number(b.kind === "heat") - Number(a.kind === "heat"));
	return [...usual, ...more.slice(0, Math.max(0, 4 - usual.length))];
}
