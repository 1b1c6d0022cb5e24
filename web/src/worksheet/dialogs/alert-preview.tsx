// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { tell } from "../../api/client";
import { SECOND, sheet, time, whole } from "../../api/worksheet";
import { flooring } from "../../canvas/lines";
import type { Alert, AlertPreview } from "../../generated/api";
import { messageOf } from "../../lib/errors";
import { alertValue } from "../alerts-now";
import { lengthWords, momentWords, spanWords } from "../times";

/** A sentence rests so long before it is tried, in ms. */
const REST = 400;
/** The preview is of so many seconds at most. */
const LONGEST = 3600;

/** What an alert would have done in the time shown, or the last hour of it: its values, its limit, and when it was raised. */
export function AlertPreviewChart({ alert }: { alert: Alert }) {
	const [found, setFound] = useState<AlertPreview | null>(null);
	const [problem, setProblem] = useState("");
	const { name: _, actions: __, ...rule } = alert;
	const key = JSON.stringify(rule);
	useEffect(() => {
		let over = false;
		const timer = setTimeout(() => {
			const shown = alert.recording === sheet.peek().recording ? time.peek() : null;
			const until = Math.min(shown?.until ?? Number.MAX_SAFE_INTEGER * 1024, 2 ** 62);
			const from = Math.max(0, shown ? Math.max(shown.from, until - LONGEST * SECOND) : 0);
			const asked = { alert: { ...alert, name: alert.name.trim() || "preview", actions: [] } };
			tell<AlertPreview>("POST", "alert-preview", {
				...asked,
				from_ns: Math.round(from),
				until_ns: Math.round(until),
			}).then(
				(answer) => {
					if (over) return;
					setFound(answer);
					setProblem("");
				},
				(error: unknown) => {
					if (over) return;
					setFound(null);
					setProblem(messageOf(error));
				},
			);
		}, REST);
		return () => {
			over = true;
			clearTimeout(timer);
		};
	}, [key]);
	return (
		<section class="preview" aria-label="Preview of the alert" aria-live="polite">
			{problem && <p class="quiet">No preview: {problem}</p>}
			{found && <Chart found={found} alert={alert} />}
		</section>
	);
}

function Chart({ found, alert }: { found: AlertPreview; alert: Alert }) {
	const { values, raised, t0_ns, interval_ns, unit } = found;
	const limit = alert.exceeds ?? alert.falls_below ?? 0;
	const known = values.filter((value): value is number => value !== null);
	const span = { from: t0_ns, until: t0_ns + values.length * interval_ns };
	const words = (value: number) => alertValue(value, unit, alert);
	const most = Math.max(limit * 1.1, ...known) || 1;
	// latencies are drawn on a logarithmic scale, as in heat maps
	const foot = unit === "ns" ? flooring(Math.min(...[limit, ...known, most / 10].filter((value) => value > 0))) : 0;
	const x = (moment: number) => ((moment - span.from) / (span.until - span.from)) * 1000;
	// above the largest value is the room of its label
	const share = (value: number) =>
		foot > 0 ? Math.log(Math.max(value, foot) / foot) / Math.log(most / foot) : value / most;
	const y = (value: number) => 100 - 75 * share(value);
	const first = raised[0];
	const total = raised.reduce((sum, { from_ns, until_ns }) => sum + until_ns - from_ns, 0);
	return (
		<>
			<div class="preview-plot">
				<svg viewBox="0 0 1000 100" preserveAspectRatio="none" aria-hidden="true">
					{raised.map(({ from_ns: from, until_ns: until }) => (
						<rect key={from} class="raised" x={x(from)} width={Math.max(2, x(until) - x(from))} y="0" height="100" />
					))}
					<path
						class="values"
						d={values
							.map((value, i) =>
								value === null
									? ""
									: `M${x(t0_ns + i * interval_ns).toFixed(1)} ${y(value).toFixed(1)}H${x(t0_ns + (i + 1) * interval_ns).toFixed(1)}`,
							)
							.join("")}
					/>
					<line class="limit" x1="0" x2="1000" y1={y(limit)} y2={y(limit)} />
				</svg>
				<span class="quiet preview-most">{words(most)}</span>
				{foot > 0 && <span class="quiet preview-least">{words(foot)}</span>}
			</div>
			<p class="quiet">
				{spanWords(span, whole.value.from)}:{" "}
				{known.length === 0
					? "no value"
					: `from ${words(Math.min(...known))} to ${words(Math.max(...known))}, limit ${words(limit)}`}
				.{" "}
				{first
					? `It would have been raised ${raised.length === 1 ? "once" : `${raised.length} times`}, for ${lengthWords(total)} in all, first at ${momentWords(first.from_ns, 1e9, whole.value.from)}.`
					: "It would not have been raised."}
			</p>
		</>
	);
}
