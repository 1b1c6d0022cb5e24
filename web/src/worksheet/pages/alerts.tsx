// SPDX-License-Identifier: Apache-2.0
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { tell } from "../../api/client";
import { add, sheet } from "../../api/worksheet";
import type { Alert, AlertLine, AlertState } from "../../generated/api";
import { besides, messageOf } from "../../lib/errors";
import { zoneWords } from "../../lib/zone";
import { alertFrom, alerts, alertValue, draft, lineSpan, lineValue, refreshAlerts } from "../alerts-now";
import { AlertForm } from "../dialogs/alert-form";
import { choose, refuse, view } from "../session";
import { showSpan } from "../time-navigation";
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

/** Alerts as sentences, their state, and the log. */
export function AlertsPage() {
	const { states, commands, lines, left } = alerts.value;
	const [asked, setAsked] = useState(false);
	const [problem, setProblem] = useState("");
	const [refusal, setRefusal] = useState("");
	const [edited, setEdited] = useState<Alert | null>(draft.peek());
	const [forms, setForms] = useState(0);
	const home = useRef<HTMLDivElement>(null);
	const changed = useRef("");
	const look = async () => {
		try {
			await refreshAlerts();
			setAsked(true);
			setProblem("");
		} catch (error) {
			setProblem(messageOf(error));
		}
	};
	useEffect(() => {
		if (draft.peek()) home.current?.querySelector<HTMLElement>("form input")?.focus();
		draft.value = null;
		void look();
		const timer = setInterval(look, EVERY);
		return () => clearInterval(timer);
	}, []);
	// the focused element is removed with the form or row: focus the place to continue
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
			<p class="quiet">Alerts are checked while this service runs.</p>
			{besides([problem, refusal]).map((words) => (
				<p key={words} class="problem" role="status">
					{words}
				</p>
			))}
			{asked && states.length === 0 && <p>No alert is set. Fill in the form below, or press Alert on a graph.</p>}
			<ul class="alerts">
				{states.map((each) => (
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
				commands={commands}
				saved={() => {
					changed.current = edited?.name ?? "";
					setEdited(null);
					setForms(forms + 1);
					void look();
				}}
			/>
			<Log lines={lines} left={left} />
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
						found.value !== null && `now ${alertValue(found.value, found.unit, alert)}`,
						found.since_ns > 0 && `since ${momentWords(found.since_ns)} ${zoneWords()}`,
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

function Log({ lines, left }: { lines: readonly AlertLine[]; left: number }) {
	if (lines.length === 0) return null;
	return (
		<>
			<h3>Log</h3>
			<div class="table">
				<table>
					<Head names={[`when (${zoneWords()})`, "alert", "event", "value", "words", ""]} />
					<tbody>
						{lines.toReversed().map((line, i) => (
							<tr key={`${line.time_ns} ${i}`}>
								<td>{momentWords(line.time_ns)}</td>
								<td>{line.name}</td>
								<td>{line.event}</td>
								<td>{lineValue(line)}</td>
								<td>{line.words}</td>
								<td>
									{lineSpan(line) && (
										<button type="button" class="small" onClick={() => showLine(line)}>
											Show
										</button>
									)}
								</td>
							</tr>
						))}
					</tbody>
				</table>
			</div>
			{left > 0 && <p class="quiet">{left} earlier lines are in the log.</p>}
		</>
	);
}

/** Show the time of a line of the log, with a graph of what it is about. */
function showLine(line: AlertLine): void {
	const span = lineSpan(line);
	if (!span) return;
	const then = line.recording && line.recording !== sheet.peek().recording ? choose(line.recording) : Promise.resolve();
	then
		.then(() => {
			const { graphs } = sheet.peek();
			if (line.statistic && !graphs.some((graph) => graph.statistic === line.statistic)) add(line.statistic);
			showSpan(span);
			view.value = "worksheet";
		})
		.catch(refuse);
}

function fresh(): Alert {
	const [first] = sheet.value.graphs;
	const bare = first && !first.statistic.endsWith("]");
	return { ...alertFrom({ statistic: bare ? first.statistic : "io.ops" }, null), also_when_clear: false };
}
