// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { snapped, usualInterval } from "../../api/columns";
import { catalogue, facts, sheet, whole } from "../../api/worksheet";
import type { SeriesAnswer } from "../../generated/api";
import { titleOf } from "../../lib/titles";
import { useAsked } from "../graph/use-answer";
import { rate } from "../graph/values";

/** What the strip shows: the first of these that was recorded. */
const SHOWN = ["io.ops", "file.ops", "nfs.ops", "app.ops"];
/** Columns of the strip at most, and how often one that grows is asked for, in ms. */
const COLUMNS = 600;
const PACE = 10_000;

/** How much I/O there was in all of the recording. Its height is that of the largest column. */
export function StripChart() {
	const all = whole.value;
	const statistic = SHOWN.find((name) => catalogue.value.some((each) => each.name === name && each.available)) ?? "";
	const interval = usualInterval((all.until - all.from) / COLUMNS);
	const { from, until } = snapped(all, interval);
	const { recording } = sheet.value;
	const asked = statistic !== "" && (facts.value?.problem ?? "") === "";
	const time = { from: String(from < 0n ? 0n : from), to: String(until), interval: `${interval}ns` };
	const words = asked ? { recording, statistic, ...time } : null;
	const { found } = useAsked<SeriesAnswer>("query", words, PACE);
	const path = useMemo(() => found && pathOf(found, all.from, all.until), [found, all.from, all.until]);
	if (!found || !path) return null;
	const most = Math.max(...found.values.map((value) => value ?? 0));
	const label = `${titleOf(statistic)}, at most ${rate(most, found.unit)}`;
	return (
		<svg class="strip" viewBox="0 0 1000 100" preserveAspectRatio="none" role="img" aria-label={label}>
			<path d={path} />
		</svg>
	);
}

/** The area below the values, 1000 wide and 100 high; nothing where nothing was recorded. */
export function pathOf(
	{ t0_ns, interval_ns, values }: Pick<SeriesAnswer, "t0_ns" | "interval_ns" | "values">,
	from: number,
	until: number,
): string {
	const most = Math.max(...values.map((value) => value ?? 0));
	if (!(most > 0) || until <= from) return "";
	const x = (column: number) => {
		const place = (1000 * (t0_ns - from + column * interval_ns)) / (until - from);
		return Math.min(1000, Math.max(0, place)).toFixed(1);
	};
	return values
		.map((value, column) =>
			value === null ? "" : `M${x(column)} 100V${(100 - (95 * value) / most).toFixed(1)}H${x(column + 1)}V100Z`,
		)
		.join("");
}
