import { h, render } from "preact";
import type { ThemeColours } from "./generated/maps";
import { page } from "./model/heatmap";
import { followMarks } from "./model/marks";
import { begin } from "./model/session";
import { followTheme } from "./model/theme";
import "./report.css";
import "./views/worksheet/dialogs.css";
import "./views/worksheet/pages.css";
import "./views/worksheet/worksheet.css";
import { enter } from "./views/entry";
import { WorksheetApp } from "./views/worksheet/app";

async function start(home: HTMLElement): Promise<void> {
	followTheme();
	const given = document.getElementById("iolab-colours")?.textContent ?? "";
	const colours = JSON.parse(given) as { light: ThemeColours; dark: ThemeColours };
	page.value = { generator: "", title: "", conditions: [], notes: [], ...colours, groups: [] };
	await begin();
	followMarks();
	home.replaceChildren();
	render(h(WorksheetApp, {}), home);
}

enter(start);
