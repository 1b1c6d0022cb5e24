import { type Box, type Span, xPixel } from "../../canvas/spaces";
import { linearTicks } from "../../canvas/ticks";
import type { SeriesAnswer, StackAnswer } from "../../generated/api";
import type { ThemeColours } from "../../generated/heatmap";

const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', 'Liberation Sans', Arial, sans-serif";
/** Told apart by all kinds of sight; what is beyond them is drawn in the last one. */
export const HUES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c00"];
export const REST = "#8a929c";

/** A layer of a stack: its values, and what they are of. */
export interface Layer {
	name: string;
	colour: string;
	values: (number | null)[];
}

/** The layers of an answer, from the bottom up; no more keys are asked for than there are hues. */
export function layersOf(answer: SeriesAnswer | StackAnswer): Layer[] {
	if (answer.kind === "series") return [{ name: answer.statistic, colour: HUES[0] ?? "", values: answer.values }];
	const shown = answer.keys.map((key, i) => ({ name: key.key, colour: HUES[i] ?? REST, values: key.values }));
	return answer.others ? [...shown, { name: "all others", colour: REST, values: answer.others.values }] : shown;
}

/** The upper edges of layers that stand on each other: of each layer and column, null where nothing was recorded. */
export function stacked(layers: readonly Layer[]): (number | null)[][] {
	let below: (number | null)[] = [];
	return layers.map((layer) => {
		below = layer.values.map((value, c) => (value === null ? null : (below[c] ?? 0) + value));
		return below;
	});
}

/** Draw layers over time: a line over a tint for one, areas for several. */
export function paintLines(
	context: CanvasRenderingContext2D,
	{ answer, box, colours }: { answer: SeriesAnswer | StackAnswer; box: Box; colours: ThemeColours },
): void {
	const layers = layersOf(answer);
	const tops = stacked(layers);
	const columns = layers[0]?.values.length ?? 0;
	const most = Math.max(1e-9, ...(tops.at(-1) ?? []).map((value) => value ?? 0));
	const span = { from: 0, to: Math.max(1, columns) };
	const y = (value: number) => box.top + box.height * (1 - value / (1.05 * most));
	context.fillStyle = colours.background;
	context.fillRect(0, 0, context.canvas.width, context.canvas.height);
	context.save();
	context.beginPath();
	context.rect(box.left, box.top, box.width, box.height);
	context.clip();
	for (let i = layers.length - 1; i >= 0; i--) {
		context.fillStyle = context.strokeStyle = layers[i]?.colour ?? REST;
		for (const [from, to] of runs(tops[i] ?? [])) {
			const edge = steps(tops[i] ?? [], from, to, box, span, y);
			context.globalAlpha = layers.length > 1 ? 1 : 0.18;
			const area = new Path2D(edge);
			area.lineTo(xPixel(box, span, to), box.top + box.height);
			area.lineTo(xPixel(box, span, from), box.top + box.height);
			context.fill(area);
			context.globalAlpha = 1;
			context.lineWidth = 1.4;
			if (layers.length === 1) context.stroke(edge);
		}
	}
	context.restore();
	paintAxes(context, { answer, box, colours, most: 1.05 * most, columns });
}

function steps(
	values: (number | null)[],
	from: number,
	to: number,
	box: Box,
	span: Span,
	y: (value: number) => number,
): Path2D {
	const path = new Path2D();
	for (let column = from; column < to; column++) {
		const height = y(values[column] ?? 0);
		if (column === from) path.moveTo(xPixel(box, span, column), height);
		path.lineTo(xPixel(box, span, column), height);
		path.lineTo(xPixel(box, span, column + 1), height);
	}
	return path;
}

/** Runs of columns in which something was recorded. */
export function runs(values: (number | null)[]): [number, number][] {
	const found: [number, number][] = [];
	for (const [column, value] of values.entries()) {
		if (value === null) continue;
		const last = found.at(-1);
		if (last && last[1] === column) last[1] = column + 1;
		else found.push([column, column + 1]);
	}
	return found;
}

function paintAxes(
	context: CanvasRenderingContext2D,
	{
		answer,
		box,
		colours,
		most,
		columns,
	}: { answer: SeriesAnswer | StackAnswer; box: Box; colours: ThemeColours; most: number; columns: number },
): void {
	context.font = FONT;
	context.fillStyle = colours.text;
	context.strokeStyle = colours.faint;
	context.lineWidth = 1;
	context.strokeRect(box.left - 0.5, box.top - 0.5, box.width + 1, box.height + 1);
	context.textAlign = "right";
	context.textBaseline = "middle";
	context.beginPath();
	const [factor, after] = answer.unit === "1" ? [100, " %"] : [1, answer.unit.endsWith("/s") ? "/s" : ""];
	for (const tick of linearTicks(0, factor * most, 6, answer.unit.startsWith("B") ? "B" : "")) {
		const y = box.top + box.height * (1 - tick.value / factor / most);
		context.moveTo(box.left - 5, y);
		context.lineTo(box.left, y);
		context.fillText(tick.value > 0 ? `${tick.label}${after}` : "0", box.left - 8, y);
	}
	context.textAlign = "center";
	context.textBaseline = "top";
	const length = Math.max(1, columns) * answer.interval_ns;
	for (const tick of linearTicks(0, length, Math.max(2, Math.floor(box.width / 80)), "ns")) {
		const x = xPixel(box, { from: 0, to: length }, tick.value);
		context.moveTo(x, box.top + box.height);
		context.lineTo(x, box.top + box.height + 5);
		context.fillText(tick.label, x, box.top + box.height + 8);
	}
	context.stroke();
}
