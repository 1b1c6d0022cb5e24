import type { StatisticFacts } from "../generated/api";

/** Something that can be added: a statistic by a field, "" for the plain number. */
export interface Choice {
	statistic: string;
	group: string;
	name: string;
	field: string;
	kind: "series" | "stack" | "heat";
	about: string;
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
			why: each.available ? "" : each.why_not,
		};
		const fields = each.breakdowns.toSorted((a, b) => Number(a.kind === "heat") - Number(b.kind === "heat"));
		return [
			{ ...shared, statistic: each.name, field: "", kind: "series" as const },
			...fields.map(({ field, kind }) => ({ ...shared, statistic: `${each.name}[${field}]`, field, kind })),
		];
	});
}

/** What stands before the dot. */
export const groupOf = (name: string): string => name.split(".")[0] ?? name;

/** Those in which every word that was typed is found, those first whose name begins with it. */
export function search(choices: readonly Choice[], typed: string): Choice[] {
	const words = typed
		.toLowerCase()
		.split(/[\s[\].,]+/)
		.filter(Boolean);
	const text = (choice: Choice) =>
		`${choice.statistic} by ${choice.field || "plain"} ${choice.kind} ${choice.about}`.toLowerCase();
	const rank = (choice: Choice) => {
		const parts = choice.statistic.toLowerCase().split(/[[\].]+/);
		const near = (word: string) => (parts.includes(word) ? 2 : parts.some((part) => part.startsWith(word)) ? 1 : 0);
		return words.reduce((sum, word) => sum - near(word), choice.why ? 100 : 0);
	};
	return choices
		.filter((choice) => words.every((word) => text(choice).includes(word)))
		.map((choice, place) => ({ choice, place, rank: rank(choice) }))
		.sort((a, b) => a.rank - b.rank || a.place - b.place)
		.map(({ choice }) => choice);
}

const TELLING = ["io.ops[latency]", "io.ops[op]", "io.ops[offset]", "io.bytes[process]"];

/** What a first look begins with: maps first, as far as they can be had. */
export function suggestions(choices: readonly Choice[]): Choice[] {
	const can = choices.filter((each) => !each.why);
	const told = TELLING.flatMap((name) => can.filter((each) => each.statistic === name));
	const others = can.filter((each) => each.kind !== "series" && !told.includes(each));
	return [...told, ...others.toSorted((a, b) => Number(b.kind === "heat") - Number(a.kind === "heat"))].slice(0, 4);
}
