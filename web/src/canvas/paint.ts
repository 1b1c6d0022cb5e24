// SPDX-License-Identifier: Apache-2.0
import type { HeatMapCounts, HeatMapGroup, ThemeColours } from "../generated/maps";
import { bitmapOf, steps } from "./bitmap";
import type { Cells } from "./cells";
import {
	type Frame,
	paintArea,
	paintBlank,
	paintIdle,
	paintStrip,
	paintTimes,
	paintValues,
	STRIP,
	timeMarks,
	within,
} from "./frame";
import { pixel } from "./hues";
import { paintLegend } from "./legend";
import { anyLost, lostBars, lostName } from "./lost";
import { paintOverlays } from "./overlays";
import type { Scale } from "./scale";
import { type Area, type Axis, type Box, type Span, xPixel } from "./spaces";
import { linearTicks, logTicks, mostTicks, UNITS } from "./ticks";

/** Marks of values on an axis of a usual height, at most. */
const MARKS = 9;

/** Everything that one map's picture depends on. */
export interface Picture {
	group: HeatMapGroup;
	map: HeatMapCounts | null;
	cells: Cells;
	scale: Scale;
	span: Span;
	axis: Axis;
	box: Box;
	colours: ThemeColours;
	lines: boolean;
	/** A value near which the axis has a mark. */
	at: number;
	brush: Area | null;
}

/** Draw a map with its axes, legend and overlays; `map` is null for a difference. The context is in CSS pixels. */
export function paint(context: CanvasRenderingContext2D, picture: Picture): void {
	const { group, map, cells, scale, axis, box, span, colours } = picture;
	const frame: Frame = { box, span, colours };
	const signed = map === null;
	const palette = steps(signed ? colours.signed : colours.palette);
	const strip = stripOf(map);
	context.fillStyle = colours.background;
	context.fillRect(0, 0, context.canvas.width, context.canvas.height);
	within(context, box, () => {
		const times = ([from, to]: [number, number]): [number, number] => [
			from * group.interval_ns,
			to * group.interval_ns,
		];
		paintIdle(context, frame, map?.gaps.map(times) ?? []);
		paintBlank(context, frame, map?.unrecorded.map(times) ?? [], "not recorded");
		const height = Math.round(box.height * devicePixelRatio);
		const paints = { scale, palette: palette.map(pixel), signed, mixture: null };
		paintBitmap(context, frame, bitmapOf(cells, axis, height, paints), cells, group.interval_ns);
		if (picture.lines && map) paintOverlays(context, frame, axis, group, map);
		if (picture.brush) paintArea(context, frame, axis, picture.brush);
	});
	const step = cells.joined * group.interval_ns;
	if (strip > 0 && map) {
		const where = { origin: cells.first * group.interval_ns, step, name: lostName(map.lost) };
		paintStrip(context, frame, lostBars(map.lost, cells), where);
	}
	paintValues(context, frame, axis, valueTicks(axis, group.unit, picture.at, box.height));
	const times = linearTicks(span.from, span.to, timeMarks(box), "ns");
	paintTimes(context, frame, times, box.top + box.height + strip);
	const lines = picture.lines && !signed ? group.lines : [];
	const lift = strip > 0 ? 8 : 0;
	paintLegend(context, box, colours, { scale, palette, signed, unit: UNITS[group.weight], lines, lift });
}

/** Draw the picture of cells where they lie in time, without smoothing. */
export function paintBitmap(
	context: CanvasRenderingContext2D,
	{ box, span }: Frame,
	bitmap: HTMLCanvasElement,
	cells: Pick<Cells, "first" | "joined" | "columns">,
	interval: number,
): void {
	const left = xPixel(box, span, cells.first * interval);
	const right = xPixel(box, span, (cells.first + cells.columns * cells.joined) * interval);
	context.imageSmoothingEnabled = false;
	context.drawImage(bitmap, left, box.top, right - left, box.height);
}

/** Marks of values on an axis, of a logarithmic one at the power below `at` for sure. */
export function valueTicks(axis: Axis, unit: HeatMapGroup["unit"], at: number, height: number) {
	const most = mostTicks(height, MARKS);
	if (axis.scale === "log") return logTicks(axis.low, axis.high, most, unit, at);
	return linearTicks(axis.low, axis.high, most, unit);
}

/** Height of the strip of losses under a map; none where nothing was lost. */
export function stripOf(map: HeatMapCounts | null): number {
	return map && anyLost(map.lost) ? STRIP : 0;
}
