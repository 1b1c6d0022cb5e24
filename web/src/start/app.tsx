// SPDX-License-Identifier: Apache-2.0
import { theme, toggleTheme } from "../lib/theme";
import { HistoryPage } from "./history";
import { HistoryList } from "./history-list";
import { RecordingList } from "./recordings";
import { problem, served, shownHistory } from "./state";
import { StudyList } from "./studies";

/** Everything that is served, or one history. */
export function StartApp() {
	const history = shownHistory.value;
	const { recordings, studies } = served.value;
	const recorded = recordings.length > 0 || studies.some((study) => study.recordings.length > 0);
	return (
		<div class="start">
			<header class="top">
				<h1>iolab</h1>
				<nav aria-label="Pages">
					<a href="/start" aria-current={history ? undefined : "page"}>
						Start
					</a>
					{recorded && <a href="/worksheet">Worksheet</a>}
				</nav>
				<button type="button" id="theme" onClick={toggleTheme}>
					{theme.value === "dark" ? "Light" : "Dark"}
				</button>
			</header>
			<main>
				{problem.value && (
					<p class="problem" role="status">
						{problem.value}
					</p>
				)}
				{history ? <HistoryPage key={history} name={history} /> : <Everything />}
			</main>
		</div>
	);
}

function Everything() {
	const { problems, studies, histories, recordings } = served.value;
	return (
		<>
			{problems.map((each) => (
				<p key={each.path} class="problem" role="status">
					{each.path}: {each.problem}
				</p>
			))}
			{studies.length + histories.length + recordings.length === 0 && <p>Nothing is served.</p>}
			<HistoryList />
			<StudyList />
			<RecordingList />
		</>
	);
}
