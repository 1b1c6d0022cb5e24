// SPDX-License-Identifier: Apache-2.0
import type { TopLevelSpec } from "vega-lite";
import type { RunDetail, Strip } from "../generated/report";
import { hueOf, placesOf } from "./hues";

const WIDTH = 560;
const HEIGHT = 96;
const TOTAL = "all";

/** A run's per-second series as strips on one time axis; stalls are shaded, a second without data breaks the line, what was done meanwhile is a rule. */
export function seriesSpec(run: RunDetail, times: readonly number[][], dark = false): TopLevelSpec {
	const ends = run.strips.flatMap((strip) => strip.lines.map((line) => times[line.time]?.at(-1) ?? 0));
	const domain = [0, Math.max(1, ...ends)];
	const colours = coloursOf(run, dark);
	return {
		vconcat: run.strips.map((strip, i) =>
			stripSpec(strip, run, times, { domain, colours }, i === 0, i === run.strips.length - 1),
		),
		spacing: 14,
		resolve: { scale: { color: "shared", x: "shared" } },
	} as unknown as TopLevelSpec;
}

/** Whether a value is known without the one before and the one after it. */
const isAlone = (values: readonly (number | null)[], i: number): boolean =>
	values[i] != null && values[i - 1] == null && values[i + 1] == null;

/** Devices in the colours that they have on a worksheet; the largest in any strip choose first. */
function coloursOf(run: RunDetail, dark: boolean): { domain: string[]; range: string[] } {
	const shares = new Map<string, number>();
	for (const { lines } of run.strips) {
		const single = lines.filter((line) => line.device !== "");
		const sums = single.map((line) => line.values.reduce((sum: number, value) => sum + Math.max(0, value ?? 0), 0));
		const all = sums.reduce((sum, value) => sum + value, 0) || 1;
		for (const [i, { device }] of single.entries())
			shares.set(device, Math.max(shares.get(device) ?? 0, (sums[i] ?? 0) / all));
	}
	const domain = [...shares.keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
	const sized = [...shares].toSorted(([a, one], [b, other]) => other - one || (a < b ? -1 : 1));
	const places = placesOf(
		"device",
		sized.map(([device]) => device),
	);
	return { domain, range: domain.map((device) => hueOf(places.get(device) ?? -1, dark)) };
}

function stripSpec(
	strip: Strip,
	run: RunDetail,
	times: readonly number[][],
	{ domain, colours }: { domain: number[]; colours: { domain: string[]; range: string[] } },
	first: boolean,
	last: boolean,
) {
	const values = strip.lines.flatMap((line) =>
		line.values.map((value, i) => ({
			second: times[line.time]?.[i] ?? null,
			value,
			device: line.device || TOTAL,
			...(isAlone(line.values, i) && { alone: true }),
		})),
	);
	const unit = strip.unit ? ` (${strip.unit})` : "";
	const words = `${strip.title}${unit}`;
	const x = {
		field: "second",
		type: "quantitative",
		scale: { domain, nice: false },
		axis: { title: last ? "seconds since the window began" : null, labels: last, grid: true, tickCount: 12 },
	};
	const y = { field: "value", type: "quantitative", axis: { title: null, tickCount: 3 }, scale: { zero: true } };
	const tooltip = [
		{ field: "second", type: "quantitative", title: "second" },
		{ field: "value", type: "quantitative", title: strip.unit || "value" },
		{ field: "device", type: "nominal", title: "device" },
	];
	const whole = { filter: `datum.device === '${TOTAL}'` };
	const single = { filter: `datum.device !== '${TOTAL}'` };
	const color = {
		field: "device",
		type: "nominal",
		scale: colours,
		legend: { title: "devices; thick line: all of them" },
	};
	const layers: unknown[] = [
		{
			data: { values: run.spans.map(([start, end]) => ({ start, end })) },
			mark: { type: "rect", opacity: 0.18, color: "#c0392b", tooltip: "stall: no byte moved" },
			encoding: { x: { field: "start", type: "quantitative" }, x2: { field: "end" } },
		},
	];
	if (strip.lines.some((line) => line.device !== "")) {
		layers.push({
			transform: [single],
			mark: { type: "line", strokeWidth: 1, opacity: 0.75 },
			encoding: {
				x,
				y,
				color,
			},
		});
		if (values.some((each) => each.alone && each.device !== TOTAL))
			layers.push({
				transform: [single, { filter: "datum.alone" }],
				mark: { type: "point", filled: true, size: 24, opacity: 0.75 },
				encoding: { x, y, color },
			});
	}
	if (strip.lines.some((line) => line.device === "")) {
		layers.push({ transform: [whole], mark: { type: "line", strokeWidth: 1.8, style: "whole" }, encoding: { x, y } });
		// a line has two ends: without a reading before and after it a reading would not be seen
		if (values.some((each) => each.alone && each.device === TOTAL))
			layers.push({
				transform: [whole, { filter: "datum.alone" }],
				mark: { type: "point", filled: true, size: 36, opacity: 1, style: "whole" },
				encoding: { x, y },
			});
	}
	if (run.marks.length > 0) {
		const data = { values: run.marks.map(([second, label]) => ({ second, label })) };
		layers.push({
			data,
			mark: { type: "rule", strokeDash: [2, 3], strokeWidth: 1.4, style: "faint" },
			encoding: { x, tooltip: { field: "label", type: "nominal", title: "done then" } },
		});
		if (first) {
			layers.push({
				data,
				mark: { type: "text", fontSize: 10, align: "right", baseline: "bottom", angle: 270, dx: -4, dy: -3 },
				encoding: { x, y: { value: 4 }, text: { field: "label", type: "nominal" } },
			});
		}
	}
	layers.push({ mark: { type: "point", opacity: 0, size: 60 }, encoding: { x, y, tooltip } });
	return {
		title: {
			text: words,
			...(strip.note && { subtitle: strip.note }),
			anchor: "start",
			fontSize: 12,
			fontWeight: 600,
			offset: 4,
		},
		width: WIDTH,
		height: HEIGHT,
		data: { values },
		layer: layers,
	};
}
