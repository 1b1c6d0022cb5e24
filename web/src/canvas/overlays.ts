// SPDX-License-Identifier: Apache-2.0
import type { HeatMapCounts, HeatMapGroup, OverlayLevel } from "../generated/maps";
import type { Frame } from "./frame";
import { type Axis, type Span, xPixel, yPixel } from "./spaces";

/** Percentiles and mean of spans long enough that a line can be followed: at most a hundred across. */
export function overlayLevel(map: HeatMapCounts, group: HeatMapGroup, span: Span): OverlayLevel | undefined {
	const columns = (span.to - span.from) / group.interval_ns;
	return map.overlays.find((level) => columns / level.joined <= 100) ?? map.overlays.at(-1);
}

/** Draw percentiles and mean over a map. `shown`: the part of time that decides how fine they are. */
export function paintOverlays(
	context: CanvasRenderingContext2D,
	{ box, span, colours }: Frame,
	axis: Axis,
	group: HeatMapGroup,
	map: HeatMapCounts,
	shown: Span = span,
): void {
	const level = overlayLevel(map, group, shown);
	if (!level) return;
	const step = level.joined * group.interval_ns;
	for (const [number, values] of level.values.entries()) {
		const path = new Path2D();
		let before = false;
		for (const [column, value] of values.entries()) {
			if (value === null) {
				before = false;
				continue;
			}
			const y = yPixel(box, axis, Math.max(value, axis.low));
			const x = xPixel(box, span, column * step);
			if (before) path.lineTo(x, y);
			else path.moveTo(x, y);
			path.lineTo(xPixel(box, span, (column + 1) * step), y);
			before = true;
		}
		context.setLineDash([]);
		context.globalAlpha = 0.7;
		context.strokeStyle = colours.background;
		context.lineWidth = 3.4;
		context.stroke(path);
		context.globalAlpha = 1;
		context.setLineDash(group.lines[number] === "mean" ? [5, 3] : []);
		context.strokeStyle = colours.lines[number % colours.lines.length] ?? colours.text;
		context.lineWidth = 1.6;
		context.stroke(path);
	}
	context.setLineDash([]);
}
