// SPDX-License-Identifier: Apache-2.0
import type { Frame } from "./frame";
import { type Axis, xPixel, yPixel } from "./spaces";

const FONT = "11px system-ui, sans-serif";

/** A horizontal line at a value, such as the limit of an alert. */
export interface LimitLine {
	value: number;
	words: string;
	/** Whether it is exceeded now. */
	raised: boolean;
}

/** A name at a moment or a span of time, in ns since the content's origin. */
export interface TimeLabel {
	from: number;
	until: number;
	label: string;
}

/** Draw limits over a plot; one outside of the axis is named at its edge with an arrow. */
export function paintLimits(
	context: CanvasRenderingContext2D,
	{ box, colours }: Frame,
	axis: Axis,
	limits: readonly LimitLine[],
): void {
	context.font = FONT;
	context.textAlign = "right";
	context.textBaseline = "middle";
	for (const { value, words, raised } of limits) {
		const [above, below] = [value > axis.high, value < axis.low];
		const y = above ? box.top + 9 : below ? box.top + box.height - 9 : yPixel(box, axis, value);
		context.strokeStyle = colours.lost;
		context.lineWidth = raised ? 2.5 : 1.5;
		if (!above && !below) {
			context.setLineDash([7, 4]);
			context.beginPath();
			context.moveTo(box.left, y);
			context.lineTo(box.left + box.width, y);
			context.stroke();
			context.setLineDash([]);
		}
		const text = `${above ? "↑ " : below ? "↓ " : ""}${raised ? "! " : ""}${words}`;
		const place = y - box.top < 18 && !above ? y + 9 : y - (above || below ? 0 : 9);
		paintText(context, text, box.left + box.width - 5, place, colours.background, colours.lost);
	}
}

/** Letters of a name over a plot at most: a mark of a command has all of its words as its name, which a tooltip shows. */
const LONGEST = 40;

/** A name that does not cover the plot. */
export const shortened = (label: string): string =>
	label.length > LONGEST ? `${label.slice(0, LONGEST - 1).trimEnd()}…` : label;

/** Draw names of moments and spans at the top of a plot, with their ends as lines. */
export function paintTimeLabels(
	context: CanvasRenderingContext2D,
	{ box, span, colours }: Frame,
	labels: readonly TimeLabel[],
): void {
	context.font = FONT;
	context.textAlign = "left";
	context.textBaseline = "middle";
	context.lineWidth = 1;
	context.strokeStyle = colours.text;
	let free = Number.NEGATIVE_INFINITY;
	for (const { from, until, label } of labels) {
		if (until < span.from || from > span.to) continue;
		const [left, right] = [xPixel(box, span, from), xPixel(box, span, until)];
		context.setLineDash([2, 3]);
		context.beginPath();
		for (const x of new Set([left, right])) {
			context.moveTo(x, box.top);
			context.lineTo(x, box.top + box.height);
		}
		context.stroke();
		context.setLineDash([]);
		const start = Math.max(box.left, left) + 4;
		const text = shortened(label);
		const wide = context.measureText(text).width;
		// of names that would cover each other the first is drawn
		if (start < free || start + wide > box.left + box.width) continue;
		free = start + wide + 8;
		paintText(context, text, start, box.top + 9, colours.background, colours.text);
	}
}

function paintText(
	context: CanvasRenderingContext2D,
	text: string,
	x: number,
	y: number,
	background: string,
	colour: string,
): void {
	context.lineWidth = 4;
	context.lineJoin = "round";
	context.strokeStyle = background;
	context.strokeText(text, x, y);
	context.fillStyle = colour;
	context.fillText(text, x, y);
	context.lineWidth = 1;
	context.strokeStyle = colour;
}
