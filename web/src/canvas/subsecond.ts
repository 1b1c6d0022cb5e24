// SPDX-License-Identifier: Apache-2.0
import type { SeriesAnswer } from "../generated/api";
import type { ThemeColours } from "../generated/maps";
import { steps } from "./bitmap";
import { dayOf, timeTicks } from "./clock";
import { FONT, type Frame, paintTimes, paintValues, timeMarks, within } from "./frame";
import { paintLegend } from "./legend";
import { levelOf, type Scale, scaleOf } from "./scale";
import { type Box, xPixel } from "./spaces";
import { linearTicks, type Unit } from "./ticks";

const SECOND = 1e9;

/** A cell: a second (from the first one of the map) and a row of the offset within it. */
export interface Place {
	second: number;
	row: number;
}

/** Counts (I/Os or bytes) by second and by offset within the second; null where nothing was recorded. */
export interface SubSecondMap {
	/** Begin of the first second, ns on the recording's clock. */
	first: number;
	seconds: number;
	/** Rows of a second, and how long each is. */
	rows: number;
	step: number;
	/** Second by second, from offset 0 on. */
	values: (number | null)[];
	unit: Unit;
	scale: Scale;
}

/** A series of I/Os or bytes per second as a map of their counts, if its interval divides a second. */
export function subSecondMap({
	t0_ns,
	interval_ns,
	values,
	unit,
}: Pick<SeriesAnswer, "t0_ns" | "interval_ns" | "values" | "unit">): SubSecondMap {
	const rows = Math.round(SECOND / interval_ns);
	const first = Math.floor(t0_ns / SECOND) * SECOND;
	const before = Math.round((t0_ns - first) / interval_ns);
	const seconds = Math.max(1, Math.ceil((before + values.length) / rows));
	const all = new Array<number | null>(seconds * rows).fill(null);
	for (const [i, value] of values.entries())
		all[before + i] = value === null ? null : Math.round((value * interval_ns) / SECOND);
	const scale = scaleOf([all.map((value) => value ?? 0)], "rank");
	return { first, seconds, rows, step: interval_ns, values: all, unit: unit === "B/s" ? "B" : "", scale };
}

/** The value of a cell. */
export const valueAt = (map: SubSecondMap, { second, row }: Place): number | null =>
	map.values[second * map.rows + row] ?? null;

/** When a cell begins, ns on the recording's clock. */
export const momentOf = (map: SubSecondMap, { second, row }: Place): number =>
	map.first + second * SECOND + row * map.step;

/** The time from one cell up to the end of another, in either order. */
export function spanBetween(map: SubSecondMap, one: Place, other: Place): { from: number; until: number } {
	const [first, last] = [momentOf(map, one), momentOf(map, other)].sort((a, b) => a - b);
	return { from: first ?? 0, until: (last ?? 0) + map.step };
}

/** The cell at a point of the canvas; null outside of the plot. Offset 0 is at the bottom. */
export function placeAt(map: SubSecondMap, box: Box, [x, y]: readonly [number, number]): Place | null {
	const second = Math.floor(((x - box.left) / box.width) * map.seconds);
	const row = Math.floor((1 - (y - box.top) / box.height) * map.rows);
	const inside = second >= 0 && second < map.seconds && row >= 0 && row < map.rows;
	return inside ? { second, row } : null;
}

/** Draw a map with its axes; `chosen`: cells from the first to the last one that are framed, second by second. */
export function paintSubSecond(
	context: CanvasRenderingContext2D,
	box: Box,
	colours: ThemeColours,
	map: SubSecondMap,
	chosen: { from: number; until: number } | null,
): void {
	const span = { from: 0, to: map.seconds * SECOND };
	const frame: Frame = { box, span, colours };
	const axis = { low: 0, high: SECOND, scale: "linear" as const };
	const palette = steps(colours.palette);
	const high = box.height / map.rows;
	within(context, box, () => {
		for (let second = 0; second < map.seconds; second++) {
			const left = Math.floor(xPixel(box, span, second * SECOND));
			const wide = Math.ceil(xPixel(box, span, (second + 1) * SECOND)) - left;
			for (let row = 0; row < map.rows; row++) {
				const value = map.values[second * map.rows + row] ?? null;
				const top = box.top + box.height - (row + 1) * high;
				if (value === null) {
					context.fillStyle = colours.hatch;
					context.fillRect(left, top + high / 2, wide, 1);
					continue;
				}
				const level = levelOf(map.scale, value);
				if (Number.isNaN(level)) continue;
				context.fillStyle = palette[Math.round(level * (palette.length - 1))] ?? colours.text;
				context.fillRect(left, top, wide, Math.ceil(high));
			}
		}
		if (chosen) paintChosen(context, frame, map, chosen);
	});
	paintValues(context, frame, axis, linearTicks(0, SECOND, 5, "ns"));
	const ticks = timeTicks(map.first, span.from, span.to, timeMarks(box), map.first);
	paintTimes(context, frame, ticks, box.top + box.height, dayOf(map.first));
	paintLegend(context, box, colours, { scale: map.scale, palette, signed: false, unit: map.unit, lines: [], lift: 0 });
	context.font = FONT;
	context.save();
	context.translate(12, box.top + box.height / 2);
	context.rotate(-Math.PI / 2);
	context.fillStyle = colours.faint;
	context.textAlign = "center";
	context.textBaseline = "middle";
	context.fillText("offset in the second", 0, 0);
	context.restore();
}

/** Frame the chosen time: a part of each second that it covers. */
function paintChosen(
	context: CanvasRenderingContext2D,
	{ box, span, colours }: Frame,
	map: SubSecondMap,
	{ from, until }: { from: number; until: number },
): void {
	context.strokeStyle = colours.text;
	context.lineWidth = 2;
	const first = Math.floor((from - map.first) / SECOND);
	const last = Math.ceil((until - map.first) / SECOND);
	for (let second = Math.max(0, first); second < Math.min(map.seconds, last); second++) {
		const begin = map.first + second * SECOND;
		const [low, high] = [Math.max(0, from - begin), Math.min(SECOND, until - begin)];
		const [left, right] = [xPixel(box, span, second * SECOND), xPixel(box, span, (second + 1) * SECOND)];
		const y = (offset: number) => box.top + box.height * (1 - offset / SECOND);
		context.strokeRect(left, y(high), Math.max(2, right - left), y(low) - y(high));
	}
}
