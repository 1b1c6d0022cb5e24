// SPDX-License-Identifier: Apache-2.0
import { effect, type Signal, signal } from "@preact/signals";
import { h, render } from "preact";
import { tooltipIn } from "./canvas/tooltip";
import type { HeatMapPage } from "./generated/heatmap";
import { HeatMapApp } from "./heatmap/app";
import { type Choice, embeds, firstChoice, kind, page, span, wholeSpan } from "./heatmap/state";
import { decode } from "./lib/decode";
import { messageOf } from "./lib/errors";
import { palettes, type Theme, theme } from "./lib/theme";
import { type Selection, sameSelection, scopeStyles, selectionOf } from "./widget/selection";
import styles from "./widget.css?inline";

/** What anywidget hands over: the values that the kernel and the page share. */
interface Model {
	get(name: "page"): string;
	get(name: "selection"): Selection | null;
	set(name: "selection", value: Selection | null): void;
	save_changes(): void;
	on(event: string, act: () => void): void;
	off(event: string, act: () => void): void;
}

/** Whether the notebook around is dark. JupyterLab and VS Code say so, otherwise the system does. */
function hostTheme(): Theme {
	const { jpThemeLight, vscodeThemeKind } = document.body.dataset;
	if (jpThemeLight !== undefined) return jpThemeLight === "true" ? "light" : "dark";
	if (vscodeThemeKind !== undefined) return vscodeThemeKind.includes("dark") ? "dark" : "light";
	return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** The maps of an output cell, in a shadow tree: the styles of the notebook and of the maps stay apart. */
function show({ model, el }: { model: Model; el: HTMLElement }): () => void {
	const root = el.attachShadow({ mode: "open" });
	const style = document.createElement("style");
	style.textContent = scopeStyles(styles);
	const home = document.createElement("div");
	root.append(style, home);
	tooltipIn(home);
	embeds.value = true;
	theme.value = hostTheme();
	let choices: Signal<Choice>[] = [];
	const stops: (() => void)[] = [
		effect(() => {
			el.dataset.theme = theme.value;
		}),
	];

	/** The brush of the only map, as the kernel knows it. */
	const tell = () => {
		const selection = selectionOf(choices[0]?.value.brush?.area ?? null);
		if (sameSelection(selection, model.get("selection"))) return;
		model.set("selection", selection);
		model.save_changes();
	};
	const follow = () => {
		const [choice] = choices;
		const wanted = model.get("selection");
		if (!choice || sameSelection(selectionOf(choice.peek().brush?.area ?? null), wanted)) return;
		const area = wanted && { from: wanted.from, to: wanted.until, low: wanted.low, high: wanted.high };
		choice.value = { ...choice.peek(), brush: area && { map: 0, area } };
	};
	const begin = async () => {
		const document: HeatMapPage = JSON.parse(await decode(model.get("page")));
		[palettes.value, page.value] = [document, document];
		span.value = wholeSpan.value;
		kind.value = document.groups[0]?.color ?? "rank";
		choices = document.groups.map((group) => signal(firstChoice(group)));
		render(h(HeatMapApp, { choices, key: document.title }), home);
		follow();
		stops.push(effect(tell));
	};
	begin().catch((error: unknown) => {
		home.textContent = messageOf(error);
	});
	model.on("change:selection", follow);
	return () => {
		model.off("change:selection", follow);
		for (const stop of stops) stop();
		tooltipIn(null);
		render(null, home);
	};
}

export default { render: show };
