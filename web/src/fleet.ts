// SPDX-License-Identifier: Apache-2.0
import { h, render } from "preact";
import { FleetApp } from "./fleet/app";
import { begin } from "./fleet/state";
import type { ThemeColours } from "./generated/maps";
import { page } from "./heatmap/state";
import { enter } from "./lib/entry";
import { followTheme } from "./lib/theme";
import "./report.css";
import "./fleet/fleet.css";

async function start(home: HTMLElement): Promise<void> {
	followTheme();
	const given = document.getElementById("iolab-colours")?.textContent ?? "";
	const colours = JSON.parse(given) as { light: ThemeColours; dark: ThemeColours };
	page.value = { generator: "", title: "", conditions: [], notes: [], ...colours, groups: [] };
	await begin();
	home.replaceChildren();
	render(h(FleetApp, {}), home);
}

enter(start);
