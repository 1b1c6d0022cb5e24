// SPDX-License-Identifier: Apache-2.0
import { type Config, parse, type Spec, View } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile, type TopLevelSpec } from "vega-lite";
import type { ChartItem, Dataset } from "../generated/report";
import { rows } from "../lib/datasets";
import { tooltip } from "./tooltip";

/** Draw a Vega-Lite specification under a configuration, at once; returns how to take it away again. */
export function draw(element: HTMLElement, spec: TopLevelSpec, config: Config, label: string): () => void {
	const compiled = compile(spec, { config: withWhole(config) as never, logger: quiet as never });
	// Expressions are interpreted, never compiled to functions: the page's policy allows no `eval`.
	const runtime = parse(compiled.spec as Spec, undefined, { ast: true } as never);
	const view = new View(runtime, { expr: expressionInterpreter, renderer: "svg", logLevel: 0 } as never);
	view
		.tooltip(tooltip as never)
		.description(label)
		.initialize(element)
		.run();
	// Vega gives containers of panel headings and of marks a role without a name, and does so at each redraw: they are only layout.
	const follow = () => {
		// known after the second pass of the layout; the style sheet makes it as large as the text of the page
		element.style.setProperty("--width", element.querySelector(":scope > svg")?.getAttribute("width") ?? "");
		for (const part of element.querySelectorAll("g[role]:not([aria-label])")) part.removeAttribute("role");
	};
	const watch = new MutationObserver(follow);
	watch.observe(element, { attributeFilter: ["role", "width"], childList: true, subtree: true });
	follow();
	return () => {
		watch.disconnect();
		view.finalize();
		element.replaceChildren();
	};
}

/** The configuration with a style for a total among its parts: the colour of text, not of a part. */
function withWhole(config: Config): Config {
	const colour = (config.title as { color?: string } | undefined)?.color ?? "currentColor";
	return { ...config, style: { ...config.style, whole: { color: colour, stroke: colour } } } as Config;
}

const quiet = {
	level: () => quiet,
	error: () => quiet,
	warn: () => quiet,
	info: () => quiet,
	debug: () => quiet,
};

const EMPTY: Dataset = { length: 0, columns: {}, constants: {} };

/** A chart's specification with its data in place and without the heading that the page shows itself. */
export function specOf(chart: ChartItem, datasets: Record<string, Dataset>): TopLevelSpec {
	const { title: _, ...rest } = chart.spec;
	const data = chart.data.map((name) => [name, rows(datasets[name] ?? EMPTY)] as const);
	return { ...rest, datasets: Object.fromEntries(data) } as unknown as TopLevelSpec;
}

/** Whether a chart has panels for a quantity, which share its scale. */
export function hasPanels(chart: ChartItem): boolean {
	const facet = chart.spec.facet;
	const y = JSON.stringify(chart.spec.spec ?? {}).includes('"y":{');
	return facet !== undefined && y && JSON.stringify(chart.spec.spec).includes('"quantitative"');
}

/** The specification with a scale of its own for the quantity in each panel: small ones fill their panel, none can be compared. */
export function ownScales(spec: TopLevelSpec): TopLevelSpec {
	const { resolve } = spec as { resolve?: { scale?: object; axis?: object } };
	return { ...spec, resolve: { ...resolve, scale: { ...resolve?.scale, y: "independent" } } } as TopLevelSpec;
}
