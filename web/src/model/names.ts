/** What a saved worksheet and an alert may be called, as the pattern of a field. */
export const NAME = "[A-Za-z0-9_\\-][A-Za-z0-9 ._\\-]{0,63}";

/** A statistic of one value of any field: the filter stands before the breakdown. */
export function filtered(name: string, field: string, value: string): string {
	const by = breakdownOf(name);
	const base = by ? name.slice(0, name.length - by.length - 2) : name;
	return `${base}[${filter(field, value)}]${by ? `[${by}]` : ""}`;
}

/** A statistic told apart by another field, "" for none. */
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

/** A value is quoted where it holds a letter that means something, as names are written everywhere. */
function filter(field: string, value: string): string {
	const plain = value !== "" && !/^ | $/.test(value) && !/[\][,="<>!]/.test(value);
	return `${field}=${plain ? value : `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`}`;
}
