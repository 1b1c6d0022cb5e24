// SPDX-License-Identifier: Apache-2.0
import { PageHead } from "../lib/page-head";
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
	const pages = [
		{ href: "/start", title: "Start", isCurrent: !history },
		...(recorded ? [{ href: "/worksheet", title: "Worksheet" }] : []),
	];
	return (
		<div class="start">
			<PageHead pages={pages} />
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
