// SPDX-License-Identifier: Apache-2.0
import { spanOf } from "../../api/worksheet";
import { xPixel, xTime, yPixel, yValue } from "../../canvas/spaces";
import type { Point } from "./actions";
import type { Drawn } from "./drawing";

/** A place of a graph that stays on its data while the plot moves below the pointer: a moment in ns, and a value of the vertical axis. */
export interface Spot {
	time: number;
	value: number;
}

const originOf = ({ content, spec }: Drawn): number => content?.origin ?? spanOf(spec).from;

/** The data at a point. */
export const spotAt = (drawn: Drawn, [x, y]: Point): Spot => ({
	time: xTime(drawn.box, drawn.span, x) + originOf(drawn),
	value: drawn.content ? yValue(drawn.box, drawn.content.axis, y) : 0,
});

/** The current position; outside of the plot if it is not shown. */
export const pointOf = (drawn: Drawn, { time, value }: Spot): Point => [
	xPixel(drawn.box, drawn.span, time - originOf(drawn)),
	drawn.content ? yPixel(drawn.box, drawn.content.axis, value) : drawn.box.top,
];

/** Whether a point is in the plot, including its edge. */
export const inPlot = ({ box }: Drawn, [x, y]: Point): boolean =>
	x >= box.left - 1 && x <= box.left + box.width + 1 && y >= box.top - 1 && y <= box.top + box.height + 1;
