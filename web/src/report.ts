// SPDX-License-Identifier: Apache-2.0
import { h, render } from "preact";
import type { Payload } from "./generated/report";
import { embedded } from "./lib/decode";
import { followTheme } from "./lib/theme";
import { keepCover } from "./report/cover";
import { followAddress, followAnchors, report, unfold, unfoldPrinted } from "./report/state";
import "./report.css";
import "./heatmap.css";
import { enter } from "./lib/entry";
import { App } from "./report/app";

async function start(home: HTMLElement): Promise<void> {
	followTheme();
	report.value = await embedded<Payload>("iolab-report");
	followAddress();
	followAnchors();
	keepCover();
	unfoldPrinted();
	home.replaceChildren();
	render(h(App, {}), home);
	// An address that names a part of the page could not be followed before the part was there.
	const anchor = location.hash.slice(1);
	const target = anchor && !anchor.includes("=") ? document.getElementById(anchor) : null;
	if (!target) return;
	unfold(target);
	target.scrollIntoView();
}

enter(start);
