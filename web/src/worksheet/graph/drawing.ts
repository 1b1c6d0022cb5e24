// SPDX-License-Identifier: Apache-2.0
import { untracked } from "@preact/signals";
import { inlined } from "../../api/offline";
import { cursor, type GraphSpec, hover, spanOf, whole } from "../../api/worksheet";
import { paintLimits, paintTimeLabels, type TimeLabel } from "../../canvas/annotations";
import { dayOf, timeTicks } from "../../canvas/clock";
import type { Content } from "../../canvas/content";
import {
	awaited,
	bordered,
	type Frame,
	inside,
	joined,
	type MARGINS,
	marginsOf,
	paintArea,
	paintAwaited,
	paintBlank,
	paintHandles,
	paintIdle,
	paintStrip,
	paintTimes,
	paintValues,
	STRIP,
	seenIdle,
	timeMarks,
	within,
} from "../../canvas/frame";
import { beforeNextFrame, claimPaint, drop } from "../../canvas/frames";
import { Heat } from "../../canvas/heat";
import { anyLost, lostBars, lostIn, lostName, lostWords } from "../../canvas/lost";
import { Plate } from "../../canvas/overscan";
import { type Box, type Span, xPixel } from "../../canvas/spaces";
import { percent, quantity } from "../../canvas/ticks";
import { visible } from "../../lib/names";
import { colours } from "../../lib/theme";
import { limitsOf } from "../alerts-now";
import { heightOf, screenHeight, windowHeight } from "../arrangement";
import { marks as recordingMarks } from "../marks";
import { idleInRuns, unrecorded } from "../recorded";
import { handlesOf } from "./brush";
import { moves } from "./motion";
import { type GraphState, type Mark, stateOf } from "./state";
import { counted } from "./values";

/** The page's text in CSS pixels for which the sizes of canvases are made. */
const TEXT = 15;

/** Where a graph is drawn now, and what it draws. Times are ns since the content's origin. */
export interface Drawn {
	box: Box;
	span: Span;
	/** CSS pixels in one of the canvas's: larger where the page's text is. */
	zoom: number;
	content: Content | null;
	spec: GraphSpec;
	/** The id of the state that holds its mark: two graphs of one specification have one each. */
	marks: string;
	draw: () => void;
	/** Called after a drag marked a part. */
	marked?: () => void;
	/** What is done whenever it was drawn. */
	painted?: () => void;
}

/** Draws a graph, at most once a frame. */
export interface Drawing {
	drawn: Drawn;
	/** Draw with the next frame. */
	ask: () => void;
	/** Put the lines of the pointer and of the selected second where they belong. */
	lines: (moment: number | null, second: { from: number; until: number } | null) => void;
	end: () => void;
}

/** The drawing of a graph on its canvas; `now` says what it shows. */
export function drawingOf(
	place: HTMLElement,
	canvas: HTMLCanvasElement,
	now: () => Pick<Drawn, "spec" | "content" | "marks">,
): Drawing {
	const plate = new Plate();
	// an opaque canvas is put on the screen without being mixed with what is below it
	const context = canvas.getContext("2d", { alpha: false });
	let version = 0;
	let known: Content | null = null;
	let layout: Layout | null = null;
	let around: readonly unknown[] = [];
	const blanks = blanksOf();
	const drawn: Drawn = {
		box: { left: 0, top: 0, width: 1, height: 1 },
		span: { from: 0, to: 1 },
		zoom: 1,
		...now(),
		draw: () => ask(),
	};
	const ask = () => beforeNextFrame(draw);
	const draw = () => {
		const { spec, content: latest, marks } = now();
		const isMoving = moves(spec).peek();
		// while graphs are dragged, the picture before is moved until it is this graph's turn to paint the next one
		const waits = isMoving && known !== null && latest !== null && latest !== known && !claimPaint();
		const content = waits ? known : latest;
		if (waits) ask();
		// reading it makes the browser lay out what changed in this frame
		if (!isMoving || !layout) layout = layoutOf(place);
		const { width, zoom, room } = layout;
		if (!context || width === 0) return;
		const ratio = devicePixelRatio * zoom;
		const height = untracked(() => heightOf(spec));
		const size = { width: Math.max(260, width / zoom), height: height + room.top + STRIP + room.bottom };
		sized(canvas, size, ratio, zoom);
		const shown = untracked(() => spanOf(spec));
		const origin = content?.origin ?? shown.from;
		const even = (value: number) => Math.round(value * ratio) / ratio;
		const box = {
			left: even(room.left),
			top: even(room.top),
			width: even(size.width - room.left - room.right),
			height: even(height),
		};
		const span = { from: shown.from - origin, to: shown.until - origin };
		Object.assign(drawn, { box, span, zoom, content, spec, marks });
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		const theme = colours.peek();
		const look = { box, span, colours: theme };
		if (content) {
			if (content !== known) version++;
			if (!isMoving || content !== known) {
				if (content.settle(span, box)) version++;
				tellOutside(spec.id, content);
			}
		}
		known = content;
		const isLossy = content !== null && anyLost(content.lost);
		const about = [content, version, theme, ratio, canvas.width, canvas.height];
		// a strip of losses moves with time, and its name is next to it
		const isSame = content !== null && !isLossy && about.every((each, i) => each === around[i]);
		around = about;
		context.fillStyle = theme.background;
		if (isSame) clearMoving(context, box, size);
		else context.fillRect(0, 0, size.width, size.height);
		const blank = blanks(content, origin);
		const late = content?.answered ? awaited(content.answered, span, blank) : [];
		if (marks === spec.id) tellLost(spec.id, span, content);
		const idle = content ? idleInRuns(content.idle, origin) : [];
		if (marks === spec.id) tellBlank(spec.id, look, blank, idle, late);
		const bordering = { ...look, box: bordered(box) };
		within(context, bordering.box, () => {
			paintIdle(context, bordering, idle);
			paintAwaited(context, bordering, late, unanswered());
			paintBlank(context, bordering, blank, content?.compared ? "one of them not recorded" : "not recorded");
		});
		if (content) {
			within(context, box, () => {
				plate.draw(context, content, version, { ...look, ratio });
				const state = stateOf(spec.id);
				paintTimeLabels(context, look, userMarks(origin));
				if (marks === spec.id)
					paintLimits(
						context,
						look,
						content.axis,
						untracked(() => limitsOf(spec)),
					);
				const mark = stateOf(marks).mark.peek();
				paintMarks(context, look, content, [mark, state.listed.peek()], state.band.peek());
				if (mark) paintHandles(context, handlesOf(drawn, mark), theme);
			});
			if (isLossy) strip(context, look, content);
			if (!isSame) {
				paintValues(context, look, content.axis, content.ticks(box.height));
				content.legend(context, box, theme);
			}
		} else paintValues(context, look, { low: 0, high: 1, scale: "linear" }, []);
		const ticks = timeTicks(origin, span.from, span.to, timeMarks(box), whole.peek().from);
		const foot = box.top + box.height + (isLossy ? STRIP : 0);
		paintTimes(context, look, ticks, foot, dayOf(shown.from));
		lines(hover.peek(), cursor.peek());
		drawn.painted?.();
	};
	const lines = (moment: number | null, second: { from: number; until: number } | null) => {
		const { box, span, zoom, content } = drawn;
		const origin = content?.origin ?? untracked(() => spanOf(drawn.spec)).from;
		const x = (time: number) => {
			const found = xPixel(box, span, time - origin);
			return Math.min(box.left + box.width, Math.max(box.left, found));
		};
		const band = (name: string, from: number | null, until: number) => {
			const element = place.querySelector<HTMLElement>(`:scope > .${name}`);
			if (!element) return;
			const outside = from === null || until - origin < span.from || from - origin > span.to;
			element.hidden = outside;
			if (outside) return;
			element.style.left = `${x(from) * zoom}px`;
			element.style.width = `${Math.max(1, (x(until) - x(from)) * zoom)}px`;
			element.style.top = `${box.top * zoom}px`;
			element.style.height = `${box.height * zoom}px`;
		};
		band("moment", moment, moment ?? 0);
		band("second", second?.from ?? null, second?.until ?? 0);
	};
	const end = () => {
		drop(draw);
	};
	return { drawn, ask, lines, end };
}

/** What the page gives a plot: its width in CSS pixels, and the zoom of its text. */
interface Layout {
	width: number;
	zoom: number;
	room: typeof MARGINS;
}

/** Read the layout of a plot, and keep the room that a graph alone has. */
function layoutOf(place: HTMLElement): Layout {
	const width = place.clientWidth;
	const zoom = Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / TEXT || 1;
	const room = marginsOf(width / zoom);
	if (width > 0) {
		screenHeight.value = heightLeft(place, zoom) - room.top - STRIP - room.bottom;
		windowHeight.value = innerHeight / zoom;
	}
	return { width, zoom, room };
}

/** Marks of time end so far below a plot, in px; numbers of the vertical axis reach as far. */
const MARK = 7;

/** Clear what moves with time: the plot and the marks of time, between the axis of values and the legend, which stay. */
function clearMoving(context: CanvasRenderingContext2D, box: Box, size: { width: number; height: number }): void {
	const foot = box.top + box.height;
	const { left, top, width, height } = bordered(box);
	context.fillRect(left, top, width, height);
	context.fillRect(box.left - 1, foot + 1, box.width + 2, MARK - 1);
	context.fillRect(0, foot + MARK, size.width, size.height - foot - MARK);
}

/** Below this width, in CSS pixels, the list is below the plot. */
const NARROW = 800;
/** What follows the plot: its caption and the frame. */
const FOOT = 44;

/** The pixels of the screen from the top of a plot down, as the page is before it is scrolled; 0 on a narrow screen. */
function heightLeft(place: HTMLElement, zoom: number): number {
	if (innerWidth < NARROW) return 0;
	return (innerHeight - place.getBoundingClientRect().top - scrollY) / zoom - FOOT;
}

/** Marks that users set, in ns since the origin. */
const userMarks = (origin: number): TimeLabel[] =>
	recordingMarks.value.found
		.filter((mark) => mark.kind === "user")
		.map((mark) => ({
			from: mark.from_ns - origin,
			until: (mark.until_ns ?? mark.from_ns) - origin,
			label: visible(mark.label),
		}))
		.sort((one, other) => one.from - other.from);

/** Give a canvas its size; a canvas of that size keeps its picture. */
function sized(canvas: HTMLCanvasElement, size: { width: number; height: number }, ratio: number, zoom: number): void {
	const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
	if (canvas.width === width && canvas.height === height) return;
	canvas.width = width;
	canvas.height = height;
	canvas.style.width = `${size.width * zoom}px`;
	canvas.style.height = `${size.height * zoom}px`;
}

/** Keep what is outside of a map's axis for the caption: nothing of numbers; the difference next to a map leaves it. */
export function tellOutside(id: string, content: Content): void {
	if (!content.compared) stateOf(id).outside.value = content instanceof Heat ? outside(content) : "";
}

/** What is above and below the axis of a map, in words. */
function outside({ seen, axis, look }: Heat): string {
	const { unit } = look.group;
	const share = percent(seen.above / Math.max(1, seen.total));
	return [
		seen.above > 0 && `${counted(seen.above, look.group)} (${share}) above ${quantity(axis.high, unit)}`,
		seen.below > 0 && `${counted(seen.below, look.group)} below ${quantity(axis.low, unit)}`,
	]
		.filter(Boolean)
		.join(" · ");
}

/** Time of which nothing is recorded, in ns since the origin: what the recording says, and what the content's own answer says. */
export function blanksOf(): (content: Content | null, origin: number) => [number, number][] {
	let key: readonly unknown[] = [];
	let found: [number, number][] = [];
	return (content, origin) => {
		const now = [content, unrecorded.peek(), origin];
		if (now.some((each, i) => each !== key[i])) {
			const spans = unrecorded.peek().map(({ from, until }): [number, number] => [from - origin, until - origin]);
			found = joined([...spans, ...(content?.hatched ?? [])]);
		}
		key = now;
		return found;
	};
}

/** Why there is no answer of a time. */
const unanswered = (): string => (inlined() ? "not in this file" : "not answered yet");

/** What is awaited for less than so many px of time is hardly seen: what is live lacks its last second again and again. */
const LATE = 120;

/** Keep for the caption which areas are hatched, shaded and dotted, if at least a pixel of them is visible. */
function tellBlank(id: string, { span, box }: Frame, blank: Spans, idle: Spans, late: Spans): void {
	const seen = (spans: Spans, least = 1) =>
		inside(spans, span).some(([from, to]) => to - from >= (least * (span.to - span.from)) / box.width);
	const words = [
		seen(blank) && "hatched: not recorded",
		seenIdle(idle, { span, box }).length > 0 && "shaded: no I/O, though some was expected",
		seen(late, LATE) && `dotted: ${unanswered()}`,
	];
	stateOf(id).blank.value = words.filter(Boolean).join(" · ");
}

/** Keep for the caption what was lost in the part that is shown. */
export function tellLost(id: string, { from, to }: Span, content: Content | null): void {
	const { lost, interval } = content ?? { lost: [], interval: 1 };
	stateOf(id).lost.value = lostWords(lostIn(lost, Math.floor(from / interval), Math.ceil(to / interval)));
}

type Spans = Content["hatched"];
type Look = Frame;

/** The marked rectangles, and rows chosen in the left panel. */
function paintMarks(
	context: CanvasRenderingContext2D,
	look: Look,
	content: Content,
	marked: readonly (Mark | null)[],
	band: GraphState["band"]["value"],
): void {
	for (const mark of marked) {
		if (!mark) continue;
		const area = { from: mark.from - content.origin, to: mark.until - content.origin, low: mark.low, high: mark.high };
		paintArea(context, look, content.axis, area);
	}
	if (band) paintArea(context, look, content.axis, { ...look.span, ...band });
}

function strip(context: CanvasRenderingContext2D, look: Look, content: Content): void {
	const { span, box } = look;
	const columns = (span.to - span.from) / content.interval;
	const joined = Math.max(1, Math.ceil((2 * columns) / box.width));
	const first = Math.floor(span.from / content.interval / joined) * joined;
	const bars = lostBars(content.lost, { first, joined, columns: Math.ceil(columns / joined) + 1 });
	const where = { origin: first * content.interval, step: joined * content.interval, name: lostName(content.lost) };
	paintStrip(context, look, bars, where);
}
