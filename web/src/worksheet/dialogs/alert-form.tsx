// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { tell } from "../../api/client";
import { recordings } from "../../api/worksheet";
import type { Alert } from "../../generated/api";
import { messageOf } from "../../lib/errors";
import { ALERT_NAME, ALERT_NAME_WORDS, breakdownOf } from "../../lib/names";
import { AlertPreviewChart } from "./alert-preview";

const PERCENTILES = ["", "p50", "p90", "p99", "p99.9", "max"] as const satisfies readonly Alert["percentile"][];

/** The unit in which a limit is written, and how many ns or bytes it has. */
export function unitOf({ percentile, statistic }: Pick<Alert, "percentile" | "statistic">): {
	scale: number;
	unit: string;
} {
	if (!percentile) return { scale: 1, unit: "" };
	return breakdownOf(statistic) === "size" ? { scale: 1024, unit: "KiB" } : { scale: 1e6, unit: "ms" };
}

/** An alert as a sentence with blanks to fill. */
export function AlertForm({ alert, commands, saved }: { alert: Alert; commands: string[]; saved: () => void }) {
	const [now, setNow] = useState(alert);
	const [problem, setProblem] = useState("");
	const change = (part: Partial<Alert>) => setNow({ ...now, ...part });
	const limit = now.exceeds ?? now.falls_below ?? 0;
	const limited = (above: boolean, value: number) =>
		change(above ? { exceeds: value, falls_below: null } : { exceeds: null, falls_below: value });
	const { scale, unit } = unitOf(now);
	const command = now.actions.find((each) => each.do === "command");
	const record = now.actions.find((each) => each.do === "record");
	const acting = (kind: "command" | "record", action: Alert["actions"][number] | null) =>
		change({ actions: [...now.actions.filter((each) => each.do !== kind), ...(action ? [action] : [])] });
	const save = async (event: Event) => {
		event.preventDefault();
		try {
			await tell("PUT", `alerts/${encodeURIComponent(now.name.trim())}`, { ...now, name: now.name.trim() });
			setProblem("");
			saved();
		} catch (error) {
			setProblem(messageOf(error));
		}
	};
	const text = (label: string, value: string, set: (value: string) => void, more: Record<string, unknown> = {}) => (
		<input aria-label={label} value={value} onInput={(event) => set(event.currentTarget.value)} {...more} />
	);
	const number = (label: string, value: number, set: (value: number) => void, more: Record<string, unknown> = {}) => (
		<input
			type="number"
			aria-label={label}
			value={String(value)}
			onInput={(event) => set(event.currentTarget.valueAsNumber || 0)}
			{...more}
		/>
	);
	return (
		<form class="sentence" onSubmit={save}>
			<h3>{alert.name ? `Change ${alert.name}` : "A new alert"}</h3>
			<p>
				Name{" "}
				{text("Name", now.name, (name) => change({ name }), {
					required: true,
					pattern: ALERT_NAME,
					title: ALERT_NAME_WORDS,
					maxLength: 64,
				})}
				. When{" "}
				<select
					aria-label="Percentile"
					title="Of a map such as io.ops[latency]: the percentile of each second"
					value={now.percentile}
					onChange={(event) => {
						const percentile = PERCENTILES.find((each) => each === event.currentTarget.value);
						if (percentile !== undefined) change({ percentile });
					}}
				>
					{PERCENTILES.map((each) => (
						<option key={each} value={each}>
							{each || "the value"}
						</option>
					))}
				</select>{" "}
				of{" "}
				{text("Statistic", now.statistic, (statistic) => change({ statistic }), {
					required: true,
					size: 24,
					spellcheck: false,
				})}{" "}
				of{" "}
				<select
					aria-label="Recording"
					value={now.recording}
					onChange={(event) => change({ recording: event.currentTarget.value })}
				>
					{recordings.value.map((each) => (
						<option key={each.name}>{each.name}</option>
					))}
				</select>{" "}
				<select
					aria-label="Direction"
					value={now.exceeds !== null ? "exceeds" : "falls below"}
					onChange={(event) => limited(event.currentTarget.value === "exceeds", limit)}
				>
					<option>exceeds</option>
					<option>falls below</option>
				</select>{" "}
				{number("Limit", limit / scale, (value) => limited(now.exceeds !== null, value * scale), { step: "any" })}{" "}
				{unit} for at least{" "}
				{number("Seconds", now.for_seconds, (for_seconds) => change({ for_seconds }), { min: 1, max: 86400 })} s, only
				during{" "}
				{text("Only during", now.only_during, (only_during) => change({ only_during }), {
					placeholder: "always, or 08:00-18:00 mon-fri",
					size: 28,
				})}
				: write to the log
				{commands.length > 0 && (
					<>
						, run{" "}
						<select
							aria-label="Command"
							value={command?.do === "command" ? command.name : ""}
							onChange={({ currentTarget: { value } }) =>
								acting("command", value ? { do: "command", name: value } : null)
							}
						>
							<option value="">no command</option>
							{commands.map((each) => (
								<option key={each}>{each}</option>
							))}
						</select>
					</>
				)}
				, keep{" "}
				{text(
					"Record",
					record?.do === "record" ? record.statistic : "",
					(statistic) =>
						acting(
							"record",
							statistic ? { do: "record", statistic, minutes: record?.do === "record" ? record.minutes : 10 } : null,
						),
					{ placeholder: "no statistic, or io.ops[latency]", size: 26, spellcheck: false },
				)}
				{record?.do === "record" && (
					<>
						{" "}
						for{" "}
						{number("Minutes", record.minutes, (minutes) => acting("record", { ...record, minutes }), {
							min: 1,
							max: 1440,
						})}{" "}
						min
					</>
				)}
				. Repeat every{" "}
				{number("Again", now.repost_minutes, (repost_minutes) => change({ repost_minutes }), { min: 0, max: 44640 })}{" "}
				min (0: once)
				{", "}
				<label>
					<input
						type="checkbox"
						checked={now.also_when_clear}
						onChange={(event) => change({ also_when_clear: event.currentTarget.checked })}
					/>{" "}
					and report its end
				</label>
				.
			</p>
			<AlertPreviewChart alert={now} />
			<button type="submit">Save</button>
			{alert.name && (
				<button type="button" onClick={saved}>
					Cancel
				</button>
			)}
			{problem && <p class="problem">{problem}</p>}
		</form>
	);
}
