import { h, render } from "preact";
import type { ThemeColours } from "./generated/heatmap";
import { kind, page, span } from "./model/heatmap";
import { followTheme } from "./model/theme";
import "./report.css";
import "./heatmap.css";
import "./views/live/live.css";
import { LiveApp } from "./views/live/app";
import { begin } from "./views/live/state";

async function start(home: HTMLElement): Promise<void> {
	followTheme();
	const given = document.getElementById("iolab-colours")?.textContent ?? "";
	const colours = JSON.parse(given) as { light: ThemeColours; dark: ThemeColours };
	page.value = { generator: "", title: "", conditions: [], notes: [], ...colours, groups: [] };
	span.value = { from: 0, to: 1 };
	kind.value = "rank";
	await begin();
	home.replaceChildren();
	render(h(LiveApp, {}), home);
}

const home = document.getElementById("app");
if (home) {
	start(home).catch((error: unknown) => {
		const problem = document.createElement("p");
		problem.className = "problem";
		problem.textContent = error instanceof Error ? error.message : String(error);
		home.replaceChildren(problem);
	});
}
