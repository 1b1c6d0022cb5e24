// SPDX-License-Identifier: Apache-2.0
import type { StatisticFacts } from "../generated/api";
import { filtered } from "../lib/names";

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
	/** Why it can't be had, "" where it can. */
	why: string;
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

/** What stands before the dot. */
export const groupOf = (name: string): string => name.split(".")[0] ?? name;

/** What people call a field besides its name. */
const ALSO: Record<string, string> = { device: "disk drive", op: "operation type", process: "program command" };
/** Operations, which hold a statistic to them by their names alone. */
const OPS = ["read", "write", "trim", "flush", "sync"];

/**
 * What was typed as a name stands first, then what begins with it, then those in which every word is found: first those with a part that
 * is or begins with one. A word that is an operation, or begins one, holds the others to it.
 */
export function search(choices: readonly Choice[], typed: string): Choice[] {
	const name = typed.trim().toLowerCase();
	const words = name.split(/[\s[\].,=]+/).filter(Boolean);
	const op = OPS.find((each) => words.some((word) => word.length > 1 && each.startsWith(word)));
	const others = words.filter((word) => !op?.startsWith(word));
	const nearness = words.includes(op ?? "") ? 2 : 1;
	return [
		...found(choices, words).map((choice) => ({ choice, rank: rank(choice, words, name) })),
		...found(op ? choices.flatMap((choice) => heldTo(choice, op)) : [], others).map((choice) => ({
			choice,
			rank: rank(choice, others, name) - nearness,
		})),
	]
		.map((each, place) => ({ ...each, place }))
		.sort((a, b) => a.rank - b.rank || a.place - b.place)
		.map(({ choice }) => choice);
}

/** A choice of one operation alone; none where it can't be held to one. */
function heldTo(choice: Choice, op: string): Choice[] {
	if (!choice.filters.includes("op") || choice.field === "op") return [];
	return [{ ...choice, statistic: filtered(choice.statistic, "op", op), about: `${choice.about} (${op} alone)` }];
}

const alsoOf = ({ field }: Choice): string => ALSO[field] ?? "";

/** Those in which every word is found. */
function found(choices: readonly Choice[], words: readonly string[]): Choice[] {
	const text = (choice: Choice) =>
		`${choice.statistic} by ${choice.field || "plain"} ${alsoOf(choice)} ${choice.kind} ${choice.about}`.toLowerCase();
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
