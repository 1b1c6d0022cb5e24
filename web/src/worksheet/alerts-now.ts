// SPDX-License-Identifier: Apache-2.0
import { computed, effect, signal } from "@preact/signals";
import { ask } from "../api/client";
import { type GraphSpec, recording, SECOND, type Span, sheet } from "../api/worksheet";
import { quantity, type Unit } from "../canvas/ticks";
import type { Alert, AlertLine, AlertLog, AlertState, Alerts } from "../generated/api";
import { breakdownOf } from "../lib/names";
import { rate } from "./graph/values";

/** Interval of requests for alerts and the log, in ms; longer if there are none. */
const OFTEN = 5_000;
const SELDOM = 30_000;

const NOTHING = { states: [] as AlertState[], commands: [] as string[], lines: [] as AlertLine[], left: 0 };

/** All alerts and their state, and the log. */
export const alerts = signal(NOTHING);
/** An alert that begins from a graph, until its form was left. */
export const draft = signal<Alert | null>(null);
/** How many alerts are raised. */
export const raised = computed(() => alerts.value.states.filter((each) => each.state === "raised").length);

/** Ask for alerts and their log. */
export async function refreshAlerts(): Promise<void> {
	const [found, log] = await Promise.all([ask<Alerts>("alerts"), ask<AlertLog>("alerts/log")]);
	alerts.value = { states: found.alerts, commands: found.commands, lines: log.lines, left: log.left };
}

/** Keep them up to date until what is returned is called. */
export function followAlerts(): () => void {
	const some = computed(() => alerts.value.states.length > 0);
	const look = () => {
		// a page that is not seen needs none; a service that is not reached is stated elsewhere
		if (!document.hidden) refreshAlerts().catch(() => undefined);
	};
	look();
	return effect(() => {
		const asking = setInterval(look, some.value ? OFTEN : SELDOM);
		return () => clearInterval(asking);
	});
}

/** A limit of an alert, in the unit of the graph's axis. */
export interface Limit {
	name: string;
	value: number;
	words: string;
	raised: boolean;
}

/** The limits of alerts on what a graph shows. */
export function limitsOf({ statistic }: Pick<GraphSpec, "statistic">): Limit[] {
	const { recording } = sheet.value;
	return alerts.value.states
		.filter(({ alert }) => alert.statistic === statistic && (alert.recording || recording) === recording)
		.map(({ alert, unit, state }) => {
			const value = alert.exceeds ?? alert.falls_below ?? 0;
			const of = alert.percentile ? `${alert.percentile} ` : "";
			const words = `${alert.name}: ${of}${alert.exceeds !== null ? ">" : "<"} ${alertValue(value, unit, alert)}`;
			return { name: alert.name, value, words, raised: state === "raised" };
		});
}

/** A value of an alert in words. */
export const alertValue = (value: number, unit: string, { percentile }: Pick<Alert, "percentile">): string =>
	percentile ? quantity(value, unit as Unit) : rate(value, unit);

/** The time of a line of the log with a minute around it, where that is known. */
export function lineSpan({ at_ns }: AlertLine): Span | null {
	return at_ns === null ? null : { from: at_ns - 60 * SECOND, until: at_ns + 30 * SECOND };
}

/** The value of a line of the log in words. */
export const lineValue = ({ value, unit }: AlertLine): string =>
	value === null ? "" : unit === "ns" || unit === "B" ? quantity(value, unit) : rate(value, unit);

/** Lines of the log that say that an alert of the recording shown was raised. */
export const raisedLines = computed(() =>
	alerts.value.lines.filter(
		(line) => line.event === "raised" && line.at_ns !== null && line.recording === recording.value,
	),
);

/** An alert on what a graph shows, with a limit at a value of its axis; `unused`: names that are taken. */
export function alertFrom({ statistic }: Pick<GraphSpec, "statistic">, limit: number | null): Alert {
	const y = breakdownOf(statistic);
	const mapped = ["latency", "queue", "size"].includes(y);
	const bare = y && !mapped ? statistic.slice(0, statistic.lastIndexOf("[")) : statistic;
	return {
		name: "",
		recording: sheet.value.recording,
		statistic: bare,
		percentile: mapped ? "p99" : "",
		exceeds: limit ?? (mapped ? (y === "size" ? 1 << 20 : 10e6) : 1000),
		falls_below: null,
		for_seconds: mapped ? 10 : 60,
		only_during: "",
		repost_minutes: 0,
		also_when_clear: true,
		actions: [{ do: "log" }],
	};
}
