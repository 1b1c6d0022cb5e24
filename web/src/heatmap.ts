import { signal } from "@preact/signals";
import { h, render } from "preact";
import type { HeatMapPage } from "./generated/heatmap";
import { embedded } from "./model/decode";
import { firstChoice, kind, page, span, wholeSpan } from "./model/heatmap";
import { followTheme } from "./model/theme";
import "./report.css";
import "./heatmap.css";
import { enter } from "./views/entry";
import { HeatMapApp } from "./views/heatmap";

async function start(home: HTMLElement): Promise<void> {
	followTheme();
	page.value = await embedded<HeatMapPage>("iolab-heatmap");
	span.value = wholeSpan.value;
	kind.value = page.value.groups[0]?.color ?? "rank";
	const choices = page.value.groups.map((group) => signal(firstChoice(group)));
	home.replaceChildren();
	render(h(HeatMapApp, { choices }), home);
}

enter(start);
