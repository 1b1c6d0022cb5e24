// SPDX-License-Identifier: Apache-2.0
import { edit, hover, setSpan, spanOf, whole } from "../../api/worksheet";
import { tooltip } from "../../canvas/tooltip";
import { moved } from "../times";
import {
	clamp,
	click,
	distance,
	high,
	mark,
	openMenu,
	type Point,
	pan,
	round,
	said,
	stepX,
	stepY,
	wide,
	zoomTime,
	zoomTo,
	zoomValues,
} from "./actions";
import { cursorOf, dragMark, type Grip, gripAt, moveMark } from "./brush";
import { inPlot, pointOf, type Spot, spotAt } from "./data-position";
import type { Drawn } from "./drawing";
import { move } from "./motion";
import { stateOf } from "./state";

/** What pointer, wheel and keys do on a graph. */
export interface Gestures {
	down: (event: PointerEvent) => void;
	move: (event: PointerEvent) => void;
	leave: (event: PointerEvent) => void;
	menu: (event: MouseEvent) => void;
	twice: () => void;
	key: (event: KeyboardEvent) => void;
	blur: () => void;
	end: () => void;
}

const FEW = 4;

/**
 * Gestures of a graph. A drag in a map marks a part; in numbers, and below each plot, it zooms to its time, left of the plot to its
 * values. With Shift or the middle button it moves in time, with Ctrl it marks. A mark is moved by its inside and resized by its edges.
 * The wheel zooms time, with Shift values, sideways it moves. A click selects a second. The begin of a mark and the point of the keys
 * stay on their data while the plot moves.
 */
export function gestures(drawn: Drawn, canvas: HTMLCanvasElement): Gestures {
	const at = (event: MouseEvent): Point => {
		const frame = canvas.getBoundingClientRect();
		return [(event.clientX - frame.left) / drawn.zoom, (event.clientY - frame.top) / drawn.zoom];
	};
	const where = ([x, y]: Point) => {
		const { left, top, width, height } = drawn.box;
		if (y > top + height) return "time";
		return x < left ? "values" : x <= left + width && y >= top ? "plot" : "";
	};
	/** What keys point at; null while they don't. */
	let cross: Spot | null = null;
	let anchor: Spot | null = null;
	/** The pointer on the graph, null while it is elsewhere or keys came after it; and what it drags. */
	let pointer: PointerEvent | null = null;
	let drags: ((now: PointerEvent) => void) | null = null;
	let began = 0;

	const tell = (event: PointerEvent) => {
		const here = at(event);
		hover.value = where(here) === "plot" && drawn.content ? spotAt(drawn, here).time : null;
		tooltip(null, event, null, said(drawn, here));
	};
	drawn.painted = () => {
		const moves = drawn.span.from + (drawn.content?.origin ?? 0) !== began;
		began = drawn.span.from + (drawn.content?.origin ?? 0);
		if (pointer && !drags && !canvas.matches(":hover")) pointer = null;
		if (pointer && drags && moves) drags(pointer);
		if (cross) showCross(canvas, drawn, pointOf(drawn, cross), !pointer);
		if (pointer) tell(pointer);
	};

	const wheel = (event: WheelEvent) => {
		const point = at(event);
		if (where(point) === "" || !drawn.content) return;
		event.preventDefault();
		move(drawn.spec);
		const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) && !event.shiftKey;
		if (sideways) return pan(drawn, event.deltaX / drawn.box.width);
		const factor = 1.0015 ** (event.deltaY || event.deltaX);
		if (event.shiftKey || where(point) === "values") zoomValues(drawn, point[1], factor);
		else zoomTime(drawn, point[0], factor);
	};
	canvas.addEventListener("wheel", wheel, { passive: false });

	return {
		down: (event) => {
			if (event.button > 1 || !drawn.content) return;
			const start = at(event);
			const spot = spotAt(drawn, start);
			const zone = where(start);
			if (zone === "") return;
			const grip = zone === "plot" ? gripAt(drawn, start, event.ctrlKey) : null;
			const mode = modeOf(drawn, zone, event, grip);
			const before = stateOf(drawn.marks).mark.peek();
			if (event.button === 1) event.preventDefault();
			cross = null;
			showCross(canvas, drawn, null, true);
			canvas.setPointerCapture(event.pointerId);
			const span = spanOf(drawn.spec);
			const step = (now: PointerEvent) => {
				const point = at(now);
				if (distance(start, point) <= FEW) return;
				if (mode === "pan") {
					move(drawn.spec);
					setSpan(drawn.spec, round(moved(span, whole.peek(), (start[0] - point[0]) / drawn.box.width)));
					return;
				}
				drags = step;
				if (mode === "brush" && grip && before) {
					stateOf(drawn.marks).mark.value = dragMark(drawn, before, grip, [point[0] - start[0], point[1] - start[1]]);
					return;
				}
				const first = pointOf(drawn, spot);
				mark(
					drawn,
					mode === "values" ? wide(drawn, first, point) : mode === "time" ? high(drawn, first, point) : [first, point],
				);
			};
			const up = (now: PointerEvent) => {
				const point = at(now);
				if (distance(start, point) > FEW) {
					const marked = stateOf(drawn.marks).mark;
					if (mode === "values" && marked.value) zoomTo(drawn.spec, marked.value, false);
					if (mode === "time" && marked.value) setSpan(drawn.spec, round(marked.value));
					if (mode === "values" || mode === "time") marked.value = null;
					if (mode === "mark" && marked.value) drawn.marked?.();
				} else if (zone === "plot") click(drawn, point);
			};
			const end = () => {
				drags = null;
				canvas.removeEventListener("pointermove", step);
				canvas.removeEventListener("pointerup", up);
			};
			canvas.addEventListener("pointermove", step);
			canvas.addEventListener("pointerup", up, { once: true });
			canvas.addEventListener("lostpointercapture", end, { once: true });
		},
		move: (event) => {
			pointer = event;
			tell(event);
			if (event.buttons === 0) canvas.style.cursor = cursorAt(drawn, where(at(event)), at(event), event);
		},
		leave: (event) => {
			pointer = null;
			hover.value = null;
			tooltip(null, event, null, null);
		},
		menu: (event) => {
			const point = at(event);
			if (where(point) !== "plot" || !drawn.content) return;
			event.preventDefault();
			openMenu(drawn, point, event.clientX, event.clientY);
		},
		twice: () => {
			edit(drawn.spec.id, { rows: null });
		},
		key: (event) => {
			const { box } = drawn;
			const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
			if (by && drawn.content && event.ctrlKey) {
				event.preventDefault();
				moveMark(drawn, by[0] ?? 0, -(by[1] ?? 0), event.shiftKey);
			} else if (by && drawn.content) {
				event.preventDefault();
				pointer = null;
				const before: Point = cross ? pointOf(drawn, cross) : [box.left + box.width / 2, box.top + box.height / 2];
				if (event.shiftKey) anchor ??= cross ?? spotAt(drawn, before);
				else anchor = null;
				const [dx, dy] = [(by[0] ?? 0) * stepX(drawn), (by[1] ?? 0) * stepY(drawn)];
				const next: Point = [clamp(before[0] + dx, box.left, box.width), clamp(before[1] + dy, box.top, box.height)];
				cross = spotAt(drawn, next);
				if (anchor) mark(drawn, [pointOf(drawn, anchor), next]);
				showCross(canvas, drawn, next, true);
				hover.value = cross.time;
			} else if (event.key === "Enter" && cross) {
				event.preventDefault();
				click(drawn, pointOf(drawn, cross));
			} else if ((event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) && cross) {
				event.preventDefault();
				const frame = canvas.getBoundingClientRect();
				const here = pointOf(drawn, cross);
				openMenu(drawn, here, frame.left + here[0] * drawn.zoom, frame.top + here[1] * drawn.zoom);
			}
		},
		blur: () => {
			[cross, anchor] = [null, null];
			hover.value = null;
			showCross(canvas, drawn, null, true);
		},
		end: () => canvas.removeEventListener("wheel", wheel),
	};
}

/** What a drag does that begins in a zone of a graph: move in time, zoom to times or values, mark a part, or change the marked part. */
function modeOf(
	{ content, spec, marks }: Drawn,
	zone: string,
	{ shiftKey, ctrlKey, button }: PointerEvent,
	grip: Grip | null,
): "pan" | "time" | "values" | "mark" | "brush" {
	if (shiftKey || button === 1) return "pan";
	if (grip) return "brush";
	if (zone === "values") return "values";
	if (zone === "time") return "time";
	// a difference has another time next to that of the graph
	return content?.cells || ctrlKey || marks !== spec.id ? "mark" : "time";
}

/** The shape of the pointer: what a drag from here would do. */
function cursorAt(drawn: Drawn, zone: string, point: Point, { shiftKey, ctrlKey }: PointerEvent): string {
	if (zone === "" || !drawn.content) return "default";
	if (shiftKey) return "grab";
	if (zone === "time") return "ew-resize";
	if (zone === "values") return "ns-resize";
	const grip = gripAt(drawn, point, ctrlKey);
	return grip ? cursorOf(grip) : "crosshair";
}

/** Put the crosshair of the keys at a point of the plot, with its values as a tooltip where `tooltips`; null removes both. */
function showCross(canvas: HTMLCanvasElement, drawn: Drawn, point: Point | null, tooltips: boolean): void {
	const element = canvas.parentElement?.querySelector<HTMLElement>(":scope > .cross");
	if (!element) return;
	element.hidden = point === null || !inPlot(drawn, point);
	if (!point || element.hidden) {
		if (tooltips) tooltip(null, new MouseEvent("blur"), null, null);
		return;
	}
	element.style.left = `${point[0] * drawn.zoom}px`;
	element.style.top = `${point[1] * drawn.zoom}px`;
	if (!tooltips) return;
	const frame = canvas.getBoundingClientRect();
	const place = { clientX: frame.left + point[0] * drawn.zoom, clientY: frame.top + point[1] * drawn.zoom };
	tooltip(null, new MouseEvent("keydown", place), null, said(drawn, point));
}
