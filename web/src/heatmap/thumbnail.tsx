// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "../api/client";
import type { Drawable } from "../api/question";
import { bitmapOf, steps } from "../canvas/bitmap";
import { fill, geometry, shades, wholeAxis } from "../canvas/cells";
import { hueOf, pixel, placeOf, REST } from "../canvas/hues";
import { recordedPart, wholeColumns } from "../canvas/lines";
import { scaleOf } from "../canvas/scale";
import { grouped, quantity, type Unit } from "../canvas/ticks";
import type { DrawnMap, StackAnswer } from "../generated/api";
import { breakdownOf, visible } from "../lib/names";
import { colours, theme } from "../lib/theme";

/** Columns of a picture, and about how wide each is, in px. */
const [FEWEST, MOST, WIDE] = [60, 240, 4];
const KEYS = 6;
/** Minimum interval of requests for a live one that is visible, in ms. */
const PACE = 2000;
/** The share of the time for which the service works on pictures that move, all of the page together. */
const SHARE = 0.03;
const LIVE = "-60s";
/** The share of I/Os above the picture's upper end. */
const CROP = 0.001;

interface Asked {
	recording: string;
	statistic: string;
	/** Whether it is still recorded: the last minute is shown, and moves. */
	live: boolean;
	/** Ends of the time that is shown, ns on the recording's clock; all of it without them. */
	from?: number | null;
	until?: number | null;
}

let turn: Promise<unknown> = Promise.resolve();

/** Ask for a picture again when it is its turn. Each answer is followed by a pause that is as long as the share of the time requires. */
function inTurn<T>(question: () => Promise<T>): Promise<T> {
	let begun = 0;
	const asked = turn.then(() => {
		begun = performance.now();
		return question();
	});
	const pause = () => new Promise((done) => setTimeout(done, (performance.now() - begun) * (1 / SHARE - 1)));
	turn = asked.then(pause, pause);
	return asked;
}

/**
 * A small picture of a statistic, without axes: a heat map, or numbers over time. It is requested when it becomes visible.
 * `named`: its colours are explained below it.
 */
export function Thumbnail({ recording, statistic, live, from, until, named = false }: Asked & { named?: boolean }) {
	const canvas = useRef<HTMLCanvasElement>(null);
	const [answer, setAnswer] = useState<Drawable | null>(null);
	const [problem, setProblem] = useState("");
	useEffect(() => {
		const place = canvas.current;
		if (!place) return undefined;
		let [seen, ended, first] = [false, false, true];
		let timer: ReturnType<typeof setTimeout> | undefined;
		const stop = new AbortController();
		const columns = Math.min(MOST, Math.max(FEWEST, Math.round(place.clientWidth / WIDE)));
		const look = async () => {
			timer = undefined;
			if (seen && !document.hidden) {
				const time = live ? { from: LIVE, interval: "1s" } : { from, to: until, columns };
				const words = { recording, statistic, drawn: "true", lines: "false", top: KEYS, ...time };
				const question = () => ask<Drawable>("query", words, stop.signal);
				try {
					const now = await (first ? question() : inTurn(question));
					first = false;
					if (ended) return;
					setAnswer(now);
					setProblem("");
				} catch (error) {
					if (ended) return;
					setProblem(error instanceof Error ? error.message : String(error));
				}
				if (!live) return;
			}
			timer = setTimeout(look, PACE);
		};
		const observer = new IntersectionObserver((entries) => {
			const before = seen;
			seen = entries.some((entry) => entry.isIntersecting);
			if (seen && !before && timer === undefined) void look();
		});
		observer.observe(place);
		return () => {
			ended = true;
			stop.abort();
			clearTimeout(timer);
			observer.disconnect();
		};
	}, [recording, statistic, live, from, until]);
	useEffect(() => {
		if (canvas.current && answer) paintThumbnail(canvas.current, answer, statistic);
	}, [answer, statistic, theme.value]);
	return (
		<span class="thumbnail">
			<canvas ref={canvas} role="img" aria-label={statistic} />
			<small>{problem || (answer ? upperEnd(answer) : " ")}</small>
			{named && <Names statistic={statistic} answer={answer} />}
		</span>
	);
}

/** Names below a picture at most. */
const NAMED = 3;

/** The largest values of a breakdown with their colours and shares, or the colours of a map. */
function Names({ statistic, answer }: { statistic: string; answer: Drawable | null }) {
	const dark = theme.value === "dark";
	const shares = answer?.kind === "stack" && answer.adds_up ? sharesOf(answer) : [];
	const palette = steps(colours.value.palette);
	return (
		<span class="names">
			{answer?.kind === "map" && (
				<span>
					fewer <i class="ramp" style={{ background: `linear-gradient(90deg, ${palette.join(", ")})` }} /> more I/Os
				</span>
			)}
			{shares.map(({ key, share }) => (
				<span key={key} title={visible(key)}>
					<svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">
						<rect width="10" height="10" rx="2" fill={hueOf(placeOf(breakdownOf(statistic), key), dark)} />
					</svg>
					<span class="name">{visible((key.startsWith("/") && key.split("/").at(-1)) || key)}</span> {share}
				</span>
			))}
		</span>
	);
}

/** The largest values of a stack with their shares of its sum. */
export function sharesOf(answer: Pick<StackAnswer, "keys" | "total">): { key: string; share: string }[] {
	const total = answer.total ?? 0;
	if (!(total > 0)) return [];
	return answer.keys
		.toSorted((one, other) => (other.total ?? 0) - (one.total ?? 0))
		.slice(0, NAMED)
		.map(({ key, total: part }) => ({ key, share: wholePercent((part ?? 0) / total) }));
}

const wholePercent = (share: number): string =>
	share > 0 && share < 0.01 ? "< 1\u00a0%" : `${Math.round(100 * share)}\u00a0%`;

/** What the upper edge of a picture is: "up to 12 ms". */
export function upperEnd(answer: Drawable): string {
	if (answer.kind === "map") {
		const { group } = answer;
		return group ? `up to ${quantity(axisOf(group).high, group.unit, 2)}` : "no I/O";
	}
	const most = Math.max(...columnSums(answer));
	if (!(most > 0)) return "no I/O";
	const unit: Unit = answer.unit.startsWith("B") ? "B" : answer.unit === "ns" ? "ns" : "";
	return `up to ${grouped(quantity(most, unit, 2))}${answer.kind === "percentiles" || answer.unit === "ns" ? "" : "/s"}`;
}

const axisOf = (group: NonNullable<DrawnMap["group"]>) => wholeAxis(group, group.y_scale, CROP);

/** The values of each key in columns that are whole; the rest of a stack has no name. */
function completeColumns(answer: Exclude<Drawable, DrawnMap>): { key: string | null; values: (number | null)[] }[] {
	const rest = answer.kind === "stack" && answer.others ? [{ key: null, values: answer.others.values }] : [];
	const keys = answer.kind === "series" ? [{ key: null, values: answer.values }] : [...answer.keys, ...rest];
	const columns = Math.max(0, ...keys.map(({ values }) => values.length));
	const [first, past] = wholeColumns(recordedPart(answer), answer.interval_ns, columns);
	return keys.map(({ key, values }) => ({ key, values: values.slice(first, past) }));
}

/** The height of each column. */
function columnSums(answer: Exclude<Drawable, DrawnMap>): number[] {
	const keys = completeColumns(answer);
	return Array.from({ length: Math.max(0, ...keys.map(({ values }) => values.length)) }, (_, column) => {
		const values = keys.map((key) => key.values[column] ?? 0);
		return answer.kind === "stack" ? values.reduce((sum, value) => sum + value, 0) : Math.max(...values);
	});
}

/** Paint an answer over all of a canvas. */
export function paintThumbnail(canvas: HTMLCanvasElement, answer: Drawable, statistic: string): void {
	const ratio = devicePixelRatio;
	const [width, height] = [canvas.clientWidth, canvas.clientHeight];
	canvas.width = Math.max(1, Math.round(width * ratio));
	canvas.height = Math.max(1, Math.round(height * ratio));
	const context = canvas.getContext("2d");
	if (!context) return;
	context.imageSmoothingEnabled = false;
	if (answer.kind === "map") paintMap(context, answer);
	else paintBars(context, answer, statistic);
}

function paintMap(context: CanvasRenderingContext2D, { group }: DrawnMap): void {
	const map = group?.maps[0];
	if (!group || !map) return;
	const { width, height } = context.canvas;
	const axis = axisOf(group);
	const span = { from: 0, to: Math.max(1, group.columns) * group.interval_ns };
	const cells = fill(map.cells, geometry(group, span, axis, { width, height }, { wide: 2, high: 3 }));
	const paint = {
		scale: scaleOf([shades(cells)], "rank"),
		palette: steps(colours.value.palette).map(pixel),
		signed: false,
		mixture: null,
	};
	const drawn = ((cells.columns * cells.joined) / group.columns) * width;
	context.drawImage(bitmapOf(cells, axis, height, paint), 0, 0, drawn, height);
}

/** Columns of numbers, each key in the colour of its name. */
function paintBars(context: CanvasRenderingContext2D, answer: Exclude<Drawable, DrawnMap>, statistic: string): void {
	const { width, height } = context.canvas;
	const sums = columnSums(answer);
	const most = Math.max(...sums);
	if (!(most > 0)) return;
	const dark = theme.value === "dark";
	const field = answer.kind === "stack" ? breakdownOf(statistic) : "";
	const plain = answer.kind === "stack" ? REST : hueOf(0, dark);
	const layers = (answer.kind === "stack" ? completeColumns(answer) : [{ key: null, values: sums }]).map(
		({ key, values }) => ({ colour: key === null ? plain : hueOf(placeOf(field, key), dark), values }),
	);
	for (let i = 0; i < sums.length; i++) {
		const [left, right] = [(i * width) / sums.length, ((i + 1) * width) / sums.length].map(Math.round);
		let bottom = height;
		for (const { colour, values } of layers) {
			const part = ((values[i] ?? 0) / most) * height;
			context.fillStyle = colour;
			context.fillRect(left ?? 0, bottom - part, Math.max(1, (right ?? 0) - (left ?? 0)), part);
			bottom -= part;
		}
	}
}
