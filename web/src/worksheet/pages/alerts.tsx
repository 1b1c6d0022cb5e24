// SPDX-License-Identifier: Apache-2.0
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ask, tell } from "../../api/client";
import { sheet } from "../../api/worksheet";
import type { Alert, AlertLog, AlertState, Alerts } from "../../generated/api";
import { besides, messageOf } from "../../lib/errors";
import { AlertForm } from "../dialogs/alert-form";
import { momentWords } from "../times";
import { Head } from "./parts";

const EVERY = 2000;
const SIGNS = {
	clear: "✓ clear",
	pending: "… beyond its limit",
	raised: "! raised",
	quiet: "– not now",
	unknown: "? unknown",
};
const LEVELS = { clear: "ok", pending: "suspect", raised: "invalid", quiet: "unjudged", unknown: "unjudged" };

/** Alerts as sentences, how they stand, and what was said of them. */
export function AlertsPage() {
	const [found, setFound] = useState<Alerts | null>(null);
	const [log, setLog] = useState<AlertLog | null>(null);
	const [problem, setProblem] = useState("");
	const [refusal, setRefusal] = useState("");
	const [edited, setEdited] = useState<Alert | null>(null);
	const [forms, setForms] = useState(0);
	const home = useRef<HTMLDivElement>(null);
	const changed = useRef("");
	const look = async () => {
		try {
			setFound(await ask<Alerts>("alerts"));
			setLog(await ask<AlertLog>("alerts/log"));
			setProblem("");
		} catch (error) {
			setProblem(messageOf(error));
		}
	};
	useEffect(() => {
		void look();
		const timer = setInterval(look, EVERY);
		return () => clearInterval(timer);
	}, []);
	// what had the focus goes with the form, or with the row: it is where one goes on
	const goTo = (row: Element | null | undefined, button: string) =>
		(row?.querySelector<HTMLElement>(button) ?? home.current?.querySelector<HTMLElement>("form input"))?.focus();
	const rows = () => [...(home.current?.querySelectorAll<HTMLElement>("[data-alert]") ?? [])];
	useLayoutEffect(() => {
		if (forms > 0)
			goTo(
				rows().find((row) => row.dataset.alert === changed.current),
				".change",
			);
	}, [forms]);
	const drop = async (name: string) => {
		setRefusal("");
		try {
			await tell("DELETE", `alerts/${encodeURIComponent(name)}`);
			const place = rows().findIndex((row) => row.dataset.alert === name);
			goTo(rows()[place + 1] ?? rows()[place - 1], ".delete");
		} catch (error) {
			setRefusal(messageOf(error));
		}
		await look();
	};
	return (
		<div class="page" ref={home}>
			<h2>Alerts</h2>
			<p class="quiet">They are watched as long as this service runs.</p>
			{besides([problem, refusal]).map((words) => (
				<p key={words} class="problem" role="status">
					{words}
				</p>
			))}
			{found?.alerts.length === 0 && <p>There is none yet.</p>}
			<ul class="alerts">
				{found?.alerts.map((each) => (
					<Row
						key={each.alert.name}
						found={each}
						edit={() => setEdited(each.alert)}
						drop={() => drop(each.alert.name)}
					/>
				))}
			</ul>
			<AlertForm
				key={`${forms} ${edited?.name ?? ""}`}
				alert={edited ?? fresh()}
				commands={found?.commands ?? []}
				saved={() => {
					changed.current = edited?.name ?? "";
					setEdited(null);
					setForms(forms + 1);
					void look();
				}}
			/>
			<Log log={log} />
		</div>
	);
}

function Row({ found, edit, drop }: { found: AlertState; edit: () => void; drop: () => void }) {
	const { alert, state } = found;
	return (
		<li data-alert={alert.name}>
			<span class={`badge ${LEVELS[state]}`}>{SIGNS[state]}</span>
			<div>
				<strong>{alert.name}</strong>: {found.sentence}
				<p class="quiet">
					{[
						found.value !== null && `now ${Number(found.value.toPrecision(4))} ${found.unit}`,
						found.since_ns > 0 && `since ${momentWords(found.since_ns)} UTC`,
						found.problem,
					]
						.filter(Boolean)
						.join(" · ")}
				</p>
			</div>
			<span class="buttons">
				<button type="button" class="small change" onClick={edit}>
					Change
				</button>
				<button type="button" class="small delete" onClick={drop}>
					Delete
				</button>
			</span>
		</li>
	);
}

function Log({ log }: { log: AlertLog | null }) {
	if (!log || log.lines.length === 0) return null;
	return (
		<>
			<h3>What was said</h3>
			<div class="table">
				<table>
					<Head names={["when (UTC)", "alert", "what", "words"]} />
					<tbody>
						{log.lines.toReversed().map((each, i) => (
							<tr key={`${each.time_ns} ${i}`}>
								<td>{momentWords(each.time_ns)}</td>
								<td>{each.name}</td>
								<td>{each.event}</td>
								<td>{each.words}</td>
							</tr>
						))}
					</tbody>
				</table>
			</div>
			{log.left > 0 && <p class="quiet">{log.left} earlier lines are in the log.</p>}
		</>
	);
}

function fresh(): Alert {
	const [first] = sheet.value.graphs;
	return {
		name: "",
		recording: sheet.value.recording,
		statistic: first && !first.statistic.endsWith("]") ? first.statistic : "io.ops",
		exceeds: 1000,
		falls_below: null,
		for_seconds: 60,
		only_during: "",
		repost_minutes: 0,
		also_when_clear: false,
		actions: [{ do: "log" }],
	};
}
