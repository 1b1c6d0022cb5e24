// SPDX-License-Identifier: Apache-2.0
/** What a saved worksheet may be called, as the pattern of a field. */
export const NAME = "[A-Za-z0-9_\\-][A-Za-z0-9 ._\\-]{0,63}";
export const NAME_WORDS = "letters, digits, spaces, . _ -; at most 64, not beginning with a dot or a space";
/** What an alert may be called: `alerts/log` is the path of their log. */
export const ALERT_NAME = `(?!log$)${NAME}`;
export const ALERT_NAME_WORDS = `${NAME_WORDS}; not "log"`;

const SHORT: Record<string, string> = { "\t": "\\t", "\n": "\\n", "\r": "\\r" };

/** Text from elsewhere as a page may have it: what is not printable, or turns text around, appears as `\x1b`; spaces alone as they are. */
export const visible = (text: string): string =>
	text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, (letter) => {
		const code = letter.codePointAt(0) ?? 0;
		const [sign, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
		return SHORT[letter] ?? `\\${sign}${code.toString(16).padStart(digits as number, "0")}`;
	});

/** A statistic of any of these values of a field: the filter comes before the breakdown. */
export function filtered(name: string, field: string, ...values: string[]): string {
	const by = breakdownOf(name);
	const base = by ? name.slice(0, name.length - by.length - 2) : name;
	return `${base}[${anyOf(field, values)}]${by ? `[${by}]` : ""}`;
}

/** A statistic broken down by another field, "" for none. */
export function brokenDown(name: string, field: string): string {
	const by = breakdownOf(name);
	const base = by ? name.slice(0, name.length - by.length - 2) : name;
	return field ? `${base}[${field}]` : base;
}

/** The field that a statistic is broken down by, "" for none. */
export function breakdownOf(name: string): string {
	return /\[([a-z_]+)\]$/.exec(name)?.[1] ?? "";
}

/** Its group and name, without filters and breakdown. */
export function rootOf(name: string): string {
	return /^[^[]*/.exec(name)?.[0].trim() ?? "";
}

/** A statistic without the conditions on a field and the breakdown by it. */
export function without(name: string, field: string): string {
	const kept = filtersOf(name).filter((each) => each.field !== field);
	const by = breakdownOf(name);
	return `${rootOf(name)}${kept.map(({ text }) => `[${text}]`).join("")}${by && by !== field ? `[${by}]` : ""}`;
}

/** A condition of a statistic: its field, and all of it as it is written between the brackets. */
export interface Filter {
	field: string;
	text: string;
}

/** The conditions of a statistic, in order. */
export function filtersOf(statistic: string): Filter[] {
	// a quoted value may hold any letter, a bracket too
	const parts = statistic.matchAll(/\[((?:"(?:[^"\\]|\\.)*"|[^\]"])*)\]/g);
	return [...parts].flatMap(([, text = ""]) => {
		const field = /^([a-z_]+)\s*[=!<>]/.exec(text)?.[1];
		return field ? [{ field, text }] : [];
	});
}

/** The condition that a field has any of these values. */
const anyOf = (field: string, values: readonly string[]): string => `${field}=${values.map(quoted).join(",")}`;

/** A value is quoted if it has a special character, as names are written everywhere. */
function quoted(value: string): string {
	const plain = value !== "" && !/^ | $/.test(value) && !/[\][,="<>!]/.test(value);
	return plain ? value : `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
