// SPDX-License-Identifier: Apache-2.0
import { unreachable } from "../../api/answer-cache";
import { behind, facts, recording, recordings, SECOND, sheetName, tick } from "../../api/worksheet";
import { quantity, thousands } from "../../canvas/ticks";
import { visible } from "../../lib/names";
import { theme, toggleTheme } from "../../lib/theme";
import { toggleZone, zone, zoneWords } from "../../lib/zone";
import { alerts, alertValue, raised } from "../alerts-now";
import { opened } from "../dialogs/dialogs";
import { marks } from "../marks";
import { choose, offline, refuse, type View, view } from "../session";
import { lengthWords } from "../times";
import { shareSheet, sharing } from "./share";

const VIEWS: { view: View; title: string; about: string }[] = [
	{ view: "worksheet", title: "Worksheet", about: "Graphs" },
	{ view: "kept", title: "Kept", about: "What outlives the events (K)" },
	{ view: "alerts", title: "Alerts", about: "Alerts (A)" },
];

/** The recording and the worksheet, with their actions. */
export function Header() {
	return (
		<header class="top">
			<h1>{offline.value ? "iolab" : <a href="/start">iolab</a>}</h1>
			{offline.value ? <span class="quiet">{visible(recording.value)}, saved to a file</span> : <Recording />}
			{!offline.value && (
				<nav aria-label="Pages">
					{VIEWS.map((each) => (
						<button
							key={each.view}
							type="button"
							title={each.about}
							aria-current={view.value === each.view ? "page" : undefined}
							onClick={() => (view.value = each.view)}
						>
							{each.title}
							{each.view === "alerts" && raised.value > 0 && (
								<span class="badge invalid raised" title={raisedWords()}>
									! {raised.value}
								</span>
							)}
						</button>
					))}
				</nav>
			)}
			<span class="quiet" id="status">
				{status()}
			</span>
			{!offline.value && view.value === "worksheet" && (
				<>
					<button
						type="button"
						id="sheets"
						title={sheetName.value || undefined}
						onClick={() => (opened.value = "sheets")}
					>
						{sheetName.value || "Save, open"}
					</button>
					<button type="button" id="share" disabled={sharing.value} onClick={() => void shareSheet()}>
						{sharing.value ? "Making the file" : "Share"}
					</button>
				</>
			)}
			<button
				type="button"
				id="zone"
				title="Times in UTC, or in the time zone of this browser (U)"
				aria-label={`Times are ${zoneWords()}: change`}
				onClick={toggleZone}
			>
				{zone.value === "UTC" ? "UTC" : "Local"}
			</button>
			<button type="button" id="theme" title="Dark or light (T)" onClick={toggleTheme}>
				{theme.value === "dark" ? "Light" : "Dark"}
			</button>
			<button type="button" id="help" aria-label="Help" onClick={() => (opened.value = "help")}>
				?
			</button>
		</header>
	);
}

function Recording() {
	return (
		<label>
			<span class="unseen">recording</span>
			<select
				id="recording"
				title="The recording that is shown (R)"
				value={recording.value}
				onChange={(event) => choose(event.currentTarget.value).catch(refuse)}
			>
				{recordings.value.map((each) => (
					<option key={each.name} value={each.name}>
						{visible(each.name)}
						{each.live ? " (live)" : ""}
					</option>
				))}
			</select>
		</label>
	);
}

/** How many records of a recording at rest were lost or could not be read, "" for none; while it is recorded the recorder says so. */
export function lostOf({ overrun = 0, missed = 0, damaged = 0 }: Record<string, number>): string {
	const lost = overrun + missed;
	return [lost > 0 && `${thousands(lost)} lost`, damaged > 0 && `${thousands(damaged)} unreadable`]
		.filter(Boolean)
		.join(" · ");
}

/** What is raised, with the latest values. */
const raisedWords = () =>
	alerts.value.states
		.filter((each) => each.state === "raised")
		.map(
			({ alert, value, unit }) =>
				`${alert.name} is raised${value === null ? "" : `: ${alertValue(value, unit, alert)}`}`,
		)
		.join("\n");

/** How far the recording is, and what it lost. */
function status(): string {
	const shown = facts.value;
	if (!shown) return "";
	const sum = (counts: Record<string, number>) => Object.values(counts).reduce((all, each) => all + each, 0);
	const now = tick.value;
	const words = [shown.host, `${thousands(sum((now ?? shown).events))} I/Os`];
	if (now) words.push(`${thousands(sum(now.lost))} lost`, unreachable.value ? "not reached" : now.state);
	else words.push(lostOf(marks.value.lost));
	if (now?.live && now.silent_s > 0 && !unreachable.value)
		words.push(`recorder silent for ${lengthWords(now.silent_s * SECOND)}`);
	if (now?.live && behind.value > 0)
		words.push(`begun again after the clock was set back: ${quantity(behind.value, "ns")} before the end`);
	if (now) words.push(...Object.entries(now.suspended).map(([source, why]) => `${source} is suspended: ${why}`));
	return visible(words.filter(Boolean).join(" · "));
}
