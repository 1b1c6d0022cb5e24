import type { HeatMapCounts, HeatMapGroup, ThemeColours } from "../generated/heatmap";
import type { Cells } from "./cells";
import { countAt, levelOf, type Scale } from "./scale";
import { type Area, type Axis, type Box, type Span, toPosition, xPixel, yPixel } from "./spaces";
import { linearTicks, logTicks, quantity } from "./ticks";

const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', 'Liberation Sans', Arial, sans-serif";
const STEPS = 256;

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
	brush: Area | null;
}

/** Draw a map with its axes, legend and overlays. The context is in CSS pixels. */
export function paint(context: CanvasRenderingContext2D, picture: Picture): void {
	const { box, colours } = picture;
	context.fillStyle = colours.background;
	context.fillRect(0, 0, context.canvas.width, context.canvas.height);
	context.save();
	context.beginPath();
	context.rect(box.left, box.top, box.width, box.height);
	context.clip();
	paintGaps(context, picture);
	paintCells(context, picture);
	if (picture.lines && picture.map) paintLines(context, picture, picture.map);
	if (picture.brush) paintBrush(context, picture, picture.brush);
	context.restore();
	if (picture.map && stripOf(picture.map)) paintStrip(context, picture, picture.map);
	paintAxes(context, picture);
	paintLegend(context, picture);
}

/** `#rrggbb` of each step of a palette that is written as one string of digits. */
export function steps(palette: string): string[] {
	return Array.from({ length: palette.length / 6 }, (_, i) => `#${palette.slice(6 * i, 6 * i + 6)}`);
}

/** The place of a count in a palette, -1 for none; a signed palette has two halves. */
export function stepOf(scale: Scale, count: number, signed: boolean): number {
	const level = levelOf(scale, count);
	if (Number.isNaN(level)) return -1;
	const step = Math.round(level * (STEPS - 1));
	if (!signed) return step;
	return count < 0 ? STEPS - 1 - step : STEPS + step;
}

function paintCells(
	context: CanvasRenderingContext2D,
	{ group, map, cells, scale, span, axis, box, colours }: Picture,
) {
	const signed = map === null;
	const palette = steps(signed ? colours.signed : colours.palette);
	// edges on whole pixels of the screen leave no seams between cells
	const whole = (pixel: number) => Math.round(pixel * devicePixelRatio) / devicePixelRatio;
	const edge = (column: number) => whole(xPixel(box, span, (cells.first + column * cells.joined) * group.interval_ns));
	const levels = cells.edges.map((value) => whole(yPixel(box, axis, Math.max(value, axis.low))));
	for (let row = 0; row + 1 < cells.edges.length; row++) {
		const [bottom, top] = [levels[row] ?? 0, levels[row + 1] ?? 0];
		for (let column = 0; column < cells.columns; column++) {
			const step = stepOf(scale, cells.counts[row * cells.columns + column] ?? 0, signed);
			if (step < 0) continue;
			context.fillStyle = palette[step] ?? colours.text;
			const left = edge(column);
			context.fillRect(left, top, edge(column + 1) - left, bottom - top);
		}
	}
}

function paintGaps(context: CanvasRenderingContext2D, { group, map, span, box, colours }: Picture) {
	context.strokeStyle = colours.hatch;
	context.lineWidth = 1;
	for (const [from, to] of [...(map?.gaps ?? []), ...(map?.unrecorded ?? [])]) {
		const left = Math.max(box.left, xPixel(box, span, from * group.interval_ns));
		const right = Math.min(box.left + box.width, xPixel(box, span, to * group.interval_ns));
		if (right - left < 1) continue;
		context.save();
		context.beginPath();
		context.rect(left, box.top, right - left, box.height);
		context.clip();
		context.beginPath();
		for (let x = left - box.height - (left % 8); x < right; x += 8) {
			context.moveTo(x, box.top + box.height);
			context.lineTo(x + box.height, box.top);
		}
		context.stroke();
		context.restore();
	}
}

/** Height of the strip of losses under a map; none where nothing was lost. */
export function stripOf(map: HeatMapCounts | null): number {
	return map && map.lost.length > 0 ? 10 : 0;
}

/** Records lost in the shown columns, those of one cell added up: a bar's height is by the logarithm, an unknown number is lowest. */
export function lostBars(map: HeatMapCounts, cells: Pick<Cells, "first" | "joined" | "columns">): Map<number, number> {
	const found = new Map<number, number>();
	for (const [column, lost] of map.lost) {
		const cell = Math.floor((column - cells.first) / cells.joined);
		if (cell >= 0 && cell < cells.columns) found.set(cell, (found.get(cell) ?? 0) + lost);
	}
	return found;
}

function paintStrip(context: CanvasRenderingContext2D, picture: Picture, map: HeatMapCounts) {
	const { group, cells, span, box, colours } = picture;
	const [top, height] = [box.top + box.height, stripOf(map)];
	const bars = lostBars(map, cells);
	const most = Math.log2(1 + Math.max(0, ...bars.values()));
	context.save();
	context.beginPath();
	context.rect(box.left, top, box.width, height);
	context.clip();
	context.fillStyle = colours.lost;
	for (const [cell, lost] of bars) {
		const left = xPixel(box, span, (cells.first + cell * cells.joined) * group.interval_ns);
		const right = xPixel(box, span, (cells.first + (cell + 1) * cells.joined) * group.interval_ns);
		const tall = (height - 2) * (0.3 + (most > 0 ? 0.7 * (Math.log2(1 + lost) / most) : 0));
		context.fillRect(left, top + height - tall, Math.max(2, right - left), tall);
	}
	context.restore();
	context.font = FONT;
	context.fillStyle = colours.lost;
	context.textAlign = "left";
	context.textBaseline = "middle";
	context.fillText("lost", box.left + box.width + 8, top + height / 2 + 1);
	context.strokeStyle = colours.faint;
	context.lineWidth = 1;
	context.strokeRect(box.left - 0.5, top - 0.5, box.width + 1, height + 1);
}

/** Percentiles and mean of spans long enough that a line can be followed: at most a hundred across. */
export function overlayLevel(map: HeatMapCounts, group: HeatMapGroup, span: Span) {
	const columns = (span.to - span.from) / group.interval_ns;
	return map.overlays.find((level) => columns / level.joined <= 100) ?? map.overlays.at(-1);
}

function paintLines(context: CanvasRenderingContext2D, picture: Picture, map: HeatMapCounts) {
	const { group, span, axis, box, colours } = picture;
	const level = overlayLevel(map, group, span);
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

function paintBrush(context: CanvasRenderingContext2D, { span, axis, box, colours }: Picture, area: Area) {
	const [left, right] = [xPixel(box, span, area.from), xPixel(box, span, area.to)];
	const [top, bottom] = [yPixel(box, axis, area.high), yPixel(box, axis, Math.max(area.low, axis.low))];
	context.strokeStyle = colours.text;
	context.lineWidth = 1.5;
	context.strokeRect(left, top, right - left, bottom - top);
	context.fillStyle = colours.text;
	context.globalAlpha = 0.08;
	context.fillRect(left, top, right - left, bottom - top);
	context.globalAlpha = 1;
}

function paintAxes(context: CanvasRenderingContext2D, { group, map, span, axis, box, colours }: Picture) {
	const foot = box.top + box.height + stripOf(map);
	context.font = FONT;
	context.fillStyle = colours.text;
	context.strokeStyle = colours.faint;
	context.lineWidth = 1;
	context.strokeRect(box.left - 0.5, box.top - 0.5, box.width + 1, box.height + 1);
	const ticks = (axis.scale === "log" ? logTicks : linearTicks)(axis.low, axis.high, 9, group.unit);
	context.textAlign = "right";
	context.textBaseline = "middle";
	context.beginPath();
	for (const tick of ticks) {
		const y = box.top + box.height * (1 - toPosition(axis, tick.value));
		context.moveTo(box.left - 5, y);
		context.lineTo(box.left, y);
		context.fillText(tick.label, box.left - 8, y);
	}
	context.textAlign = "center";
	context.textBaseline = "top";
	for (const tick of linearTicks(span.from, span.to, Math.max(2, Math.floor(box.width / 80)), "ns")) {
		const x = xPixel(box, span, tick.value);
		context.moveTo(x, foot);
		context.lineTo(x, foot + 5);
		context.fillText(tick.label, x, foot + 8);
	}
	context.stroke();
}

function paintLegend(context: CanvasRenderingContext2D, { group, map, scale, box, colours, lines }: Picture) {
	const signed = map === null;
	const palette = steps(signed ? colours.signed : colours.palette);
	const x = box.left + box.width + 14;
	const tall = Math.min(120, box.height - 60);
	const foot = box.top + box.height - (stripOf(map) > 0 ? 24 : 16);
	for (let i = 0; i < tall; i++) {
		context.fillStyle = palette[Math.floor((i / (tall - 1)) * (palette.length - 1))] ?? colours.text;
		context.fillRect(x, foot - i - 1, 12, 1.2);
	}
	context.fillStyle = colours.text;
	context.textAlign = "left";
	context.textBaseline = "middle";
	const words = (level: number) => legendText(scale, level, signed, group.weight === "time");
	for (const place of [0, 0.5, 1]) {
		context.fillText(words(signed ? 2 * place - 1 : place), x + 17, foot - place * tall);
	}
	context.fillStyle = colours.faint;
	context.textBaseline = "alphabetic";
	context.fillText(scale.kind, x, foot + 14);
	if (!lines || signed) return;
	for (const [number, name] of group.lines.entries()) {
		context.fillStyle = colours.lines[number % colours.lines.length] ?? colours.text;
		context.fillText(`${name === "mean" ? "┅" : "━"} ${name}`, x, box.top + 10 + 14 * number);
	}
}

function legendText(scale: Scale, level: number, signed: boolean, time: boolean): string {
	if (signed && level === 0) return "0";
	const count = countAt(scale, Math.abs(level));
	if (Number.isNaN(count)) return "";
	const text = time ? quantity(count, "ns", 3) : quantity(Math.round(count), "", 9);
	return signed ? `${level > 0 ? "+" : "-"}${text}` : text;
}
