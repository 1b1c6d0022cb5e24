// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import { h, render } from "preact";
import type { HeatMapPage } from "./generated/heatmap";
import { firstChoice, kind, page, span, wholeSpan } from "./heatmap/state";
import { embedded } from "./lib/decode";
import { followTheme, palettes } from "./lib/theme";
import "./report.css";
import "./heatmap.css";
import { HeatMapApp } from "./heatmap/app";
import { enter } from "./lib/entry";

async function start(home: HTMLElement): Promise<void> {
	followTheme();
	const document = await embedded<HeatMapPage>("iolab-heatmap");
	[palettes.value, page.value] = [document, document];
	span.value = wholeSpan.value;
	kind.value = page.value.groups[0]?.color ?? "rank";
	const choices = page.value.groups.map((group) => signal(firstChoice(group)));
	home.replaceChildren();
	render(h(HeatMapApp, { choices }), home);
}

enter(start);
