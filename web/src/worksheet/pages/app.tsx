// SPDX-License-Identifier: Apache-2.0
import { effect } from "@preact/signals";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { refusal, unreachable } from "../../api/answer-cache";
import { trouble } from "../../api/served";
import { graphs, recording, refused, sheetName } from "../../api/worksheet";
import { besides } from "../../lib/errors";
import { followAlerts } from "../alerts-now";
import { AddDialog } from "../dialogs/add";
import { HelpDialog } from "../dialogs/help";
import { MarksDialog } from "../dialogs/mark-list";
import { SheetsDialog } from "../dialogs/saved-worksheets";
import { TimeBar } from "../dialogs/time";
import { offline, view } from "../session";
import { AlertsPage } from "./alerts";
import { Empty } from "./empty";
import { Frame } from "./frame";
import { Header } from "./header";
import { KeptPage } from "./kept";
import { listenToKeys } from "./keys";
import { OdditiesPanel } from "./odd";
import { Overview } from "./overview";
import { ReplayBar } from "./replay-bar";

/** The page: what is served, when, and the graphs; other pages in their place. */
export function WorksheetApp() {
	// with what is seen, its keys are heard
	useLayoutEffect(() => listenToKeys(), []);
	useEffect(() => effect(title), []);
	useEffect(() => (offline.peek() ? undefined : followAlerts()), []);
	return (
		<div class="worksheet">
			<Header />
			{view.value === "worksheet" && <TimeBar />}
			<main>
				<Problems />
				{view.value === "worksheet" && <Graphs />}
				{view.value === "kept" && <KeptPage />}
				{view.value === "alerts" && <AlertsPage />}
			</main>
			{view.value === "worksheet" && <ReplayBar />}
			<AddDialog />
			<SheetsDialog />
			<MarksDialog />
			<HelpDialog />
		</div>
	);
}

function Graphs() {
	return (
		<>
			<Overview />
			{!offline.value && <OdditiesPanel />}
			{graphs.value.length === 0 && !offline.value && <Empty />}
			<div class="graphs">
				{graphs.value.map((spec) => (
					<Frame key={spec.id} spec={spec} />
				))}
			</div>
		</>
	);
}

/** What is wrong with all of it: without a service, without a readable recording, or a wish that was refused. */
function Problems() {
	const unread = trouble.value && `${trouble.value}. ${UNREAD}`;
	const words = besides([refusal.value || (unreachable.value && LOST), unread, refused.value]);
	return (
		<div class="problems" role="status">
			{words.map((each) => (
				<p key={each} class="problem">
					{each}
					{each === refused.value && (
						<button type="button" class="small" onClick={() => (refused.value = "")}>
							All right
						</button>
					)}
				</p>
			))}
		</div>
	);
}

const LOST = "The service is not reached. What is shown stays; the page retries every two seconds and then continues.";

const UNREAD = "What is shown stays; the page checks every two seconds and then continues.";

function title(): void {
	document.title = [sheetName.value, recording.value, "iolab"].filter(Boolean).join(" · ");
}
