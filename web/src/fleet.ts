// SPDX-License-Identifier: Apache-2.0
import { h, render } from "preact";
import { FleetApp } from "./fleet/app";
import { begin } from "./fleet/state";
import { enter } from "./lib/entry";
import { followTheme, readPalettes } from "./lib/theme";
import "./report.css";
import "./fleet/fleet.css";

async function start(home: HTMLElement): Promise<void> {
	followTheme();
	readPalettes();
	await begin();
	home.replaceChildren();
	render(h(FleetApp, {}), home);
}

enter(start);
