// SPDX-License-Identifier: Apache-2.0
import { grouped, percent, quantity, thousands, UNITS, type Unit } from "../../canvas/ticks";
import type { HeatMapGroup } from "../../generated/maps";

/** A value in its readable unit: per second, a level, or a share. */
export function rate(value: number | null, unit: string): string {
	if (value === null) return "nothing recorded";
	if (unit === "1") return `${quantity(100 * value, "", 3)} %`;
	return `${grouped(quantity(value, unit.startsWith("B") ? "B" : ""))}${unit.endsWith("/s") ? "/s" : ""}`;
}

/** A percentile of a map's values. */
export const percentileWords = (value: number, { y, unit }: { y: string; unit: Unit }): string =>
	y === "utilization" ? `${quantity(value, "", 3)} %` : quantity(value, unit);

/** A plain sum, "" of levels and shares, which have none. */
export function amount(total: number, unit: string): string {
	if (!unit.endsWith("/s")) return "";
	return unit === "B/s" ? quantity(total, "B") : thousands(total);
}

/** What a map is of, as far as that says what it counts. */
type Counted = { y: string } & Partial<Pick<HeatMapGroup, "weight">>;

/** What cells of a map hold: I/Os of most, the bytes of these, devices or processors by utilization. */
export function counted(count: number, { y, weight = "count" }: Counted): string {
	if (weight !== "count") return quantity(count, UNITS[weight]);
	const unit = y === "utilization" ? "reading" : "I/O";
	return `${thousands(count)} ${unit}${count === 1 ? "" : "s"}`;
}

/** What chosen rows of a map hold together: how much, a second of what is recorded, and of all that is shown. */
export function chosenSum(
	chosen: readonly { count: number }[],
	all: readonly { count: number }[],
	seconds: number,
	about: Counted,
): string {
	const [sum, total] = [chosen, all].map((rows) => rows.reduce((most, { count }) => most + count, 0)) as [
		number,
		number,
	];
	const rated = about.y !== "utilization" && about.weight !== "time" && seconds > 0;
	return [
		counted(sum, about),
		rated && rate(sum / seconds, about.weight === "bytes" ? "B/s" : "1/s"),
		`${percent(sum / Math.max(1, total))} of all`,
	]
		.filter(Boolean)
		.join(", ");
}

/** A row's values; the upper bound is not in it. */
export function rowWords(low: number, high: number, unit: Unit, y: string): string {
	if (y === "utilization") return high - low <= 1 ? `${low} %` : `${low} to ${high - 1} %`;
	if (high - low <= 1) return quantity(low, unit, 9);
	return `${quantity(low, unit)} to ${quantity(high, unit)}`;
}
