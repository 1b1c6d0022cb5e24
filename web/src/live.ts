import { h, render } from "preact";
import type { ThemeColours } from "./generated/heatmap";
import { page } from "./model/heatmap";
import { followMarks } from "./model/marks";
import { begin } from "./model/session";
import { followTheme } from "./model/theme";
import "./report.css";
import "./views/worksheet/dialogs.css";
import "./views/worksheet/pages.css";
import "./views/worksheet/worksheet.css";
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

const home = document.getElementById("app");
if (home) {
	start(home).catch((error: unknown) => {
		const problem = document.createElement("p");
		problem.className = "problem";
		problem.setAttribute("role", "alert");
		problem.textContent = error instanceof Error ? error.message : String(error);
		home.replaceChildren(problem);
	});
}
