// SPDX-License-Identifier: Apache-2.0
import { h, render } from "preact";
import { followTheme, readPalettes } from "./lib/theme";
import { followMarks } from "./worksheet/marks";
import { begin } from "./worksheet/session";
import "./report.css";
import "./worksheet/dialogs/dialogs.css";
import "./worksheet/pages/pages.css";
import "./worksheet/worksheet.css";
import { enter } from "./lib/entry";
import { WorksheetApp } from "./worksheet/pages/app";

async function start(home: HTMLElement): Promise<void> {
	followTheme();
	readPalettes();
	await begin();
	followMarks();
	home.replaceChildren();
	render(h(WorksheetApp, {}), home);
}

enter(start);
