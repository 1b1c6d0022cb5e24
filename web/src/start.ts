// SPDX-License-Identifier: Apache-2.0
import { h, render } from "preact";
import { enter } from "./lib/entry";
import { followTheme, readPalettes } from "./lib/theme";
import { StartApp } from "./start/app";
import { followAddress, loadStart } from "./start/state";
import "./report.css";
import "./start/start.css";

async function start(home: HTMLElement): Promise<void> {
	// saved addresses of worksheets name a recording or a graph
	const shown = new URLSearchParams(location.hash.slice(1));
	if (shown.has("recording") || shown.has("graph")) {
		location.replace(`/worksheet${location.hash}`);
		return;
	}
	followTheme();
	readPalettes();
	await loadStart();
	followAddress();
	home.replaceChildren();
	render(h(StartApp, {}), home);
}

enter(start);
