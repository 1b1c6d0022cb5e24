// SPDX-License-Identifier: Apache-2.0
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { wordsOf } from "../../api/feed";
import { type GraphSpec, SECOND, type Span, setSpan, spanOf, whole } from "../../api/worksheet";
import { marginsOf } from "../../canvas/frame";
import type { Box } from "../../canvas/spaces";
import {
	momentOf,
	type Place,
	paintSubSecond,
	placeAt,
	spanBetween,
	subSecondMap,
	valueAt,
} from "../../canvas/subsecond";
import { quantity } from "../../canvas/ticks";
import type { SeriesAnswer } from "../../generated/api";
import { brokenDown } from "../../lib/names";
import { colours } from "../../lib/theme";
import { titleOf } from "../../lib/titles";
import { lengthWords, momentWords, spanWords } from "../times";
import { reveal } from "./reveal";
import { stateOf } from "./state";
import "./sub-second.css";
import { useAsked, useRested } from "./use-answer";
import { counted } from "./values";

/** Seconds that are shown at most: the latest of the graph's. */
const MOST = 3600;
const HEIGHT = 240;

/** Rows of a second: fewer of long times, so that an answer stays small. */
const rowsOf = (seconds: number): number => (seconds <= 600 ? 50 : 20);

/** The whole seconds of a graph's time that the map is of. */
export function secondsOf({ from, until }: Span): Span {
	const last = Math.ceil(until / SECOND) * SECOND;
	return { from: Math.max(Math.floor(from / SECOND) * SECOND, last - MOST * SECOND), until: last };
}

/** Second against offset within the second; two cells choose a range of time. */
export function SubSecondView({ spec }: { spec: GraphSpec }) {
	const statistic = brokenDown(spec.statistic, "");
	const words = useRested(() => askedOf(spec, statistic), 250, [spec, statistic]);
	const { found, problem } = useAsked<SeriesAnswer>("query", words, 500);
	const close = () => {
		stateOf(spec.id).subSecond.value = false;
	};
	const home = useRef<HTMLElement>(null);
	useEffect(() => reveal(home.current), []);
	return (
		<section ref={home} class="sub-second" aria-label={`${titleOf(statistic)} by offset in the second`}>
			<div class="io-head">
				<strong>{titleOf(statistic)} by offset in the second</strong>
				<span class="quiet">Choose two cells: the time between them can be shown.</span>
				<span class="room" />
				<button type="button" class="small" title="E" onClick={close}>
					Close the map
				</button>
			</div>
			{problem && <p class="problem">{problem}</p>}
			{!found && !problem && <p class="quiet waiting">asking…</p>}
			{found && <Plot spec={spec} answer={found} />}
		</section>
	);
}

function askedOf(spec: GraphSpec, statistic: string) {
	const { recording, source } = wordsOf(spec);
	const { from, until } = secondsOf(spanOf(spec));
	const interval = SECOND / rowsOf((until - from) / SECOND);
	const time = { from: String(BigInt(Math.max(0, from))), to: String(BigInt(until)), interval: `${interval}ns` };
	return { recording: recording ?? "", statistic, source: source ?? "", ...time };
}

/** The cell under the pointer or of the keys, and the two chosen cells. */
interface Choice {
	at: Place | null;
	first: Place | null;
	last: Place | null;
}

function Plot({ spec, answer }: { spec: GraphSpec; answer: SeriesAnswer }) {
	const map = useMemo(() => subSecondMap(answer), [answer]);
	const [{ at, first, last }, setChoice] = useState<Choice>({ at: null, first: null, last: null });
	const [width, setWidth] = useState(0);
	const home = useRef<HTMLDivElement>(null);
	const room = marginsOf(width);
	const box: Box = { left: room.left, top: 6, width: Math.max(1, width - room.left - room.right), height: HEIGHT };
	const other = last ?? (first && at);
	const span = first && other ? spanBetween(map, first, other) : at && spanBetween(map, at, at);
	// other data have other cells
	useEffect(() => setChoice({ at: null, first: null, last: null }), [map.first, map.seconds, map.rows]);
	useLayoutEffect(() => {
		const place = home.current;
		if (!place) return undefined;
		const observer = new ResizeObserver(() => setWidth(place.clientWidth));
		observer.observe(place);
		return () => observer.disconnect();
	}, []);
	const theme = colours.value;
	useLayoutEffect(() => {
		const canvas = home.current?.querySelector("canvas");
		const context = canvas?.getContext("2d");
		if (!canvas || !context || width === 0) return;
		const ratio = devicePixelRatio;
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round((HEIGHT + 34) * ratio);
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		context.fillStyle = theme.background;
		context.fillRect(0, 0, width, HEIGHT + 34);
		paintSubSecond(context, box, theme, map, span);
	}, [map, width, theme, span?.from, span?.until]);
	const point = (event: PointerEvent): Place | null => {
		const frame = (event.currentTarget as HTMLElement).getBoundingClientRect();
		return placeAt(map, box, [event.clientX - frame.left, event.clientY - frame.top]);
	};
	const choose = (place: Place | null) => {
		if (!place) return;
		setChoice(first && !last ? { at: place, first, last: place } : { at: place, first: place, last: null });
	};
	const keys = (event: KeyboardEvent) => {
		const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
		if (by) {
			const from = at ?? { second: Math.floor(map.seconds / 2), row: 0 };
			const next = from.second * map.rows + from.row + (by[0] ?? 0) * map.rows + (by[1] ?? 0);
			const place = Math.min(map.seconds * map.rows - 1, Math.max(0, next));
			setChoice({ at: { second: Math.floor(place / map.rows), row: place % map.rows }, first, last });
		} else if (event.key === "Enter") choose(at);
		else if (event.key === "Escape" && (first || at)) setChoice({ at: null, first: null, last: null });
		else return;
		event.preventDefault();
		event.stopPropagation();
	};
	const value = at && valueAt(map, at);
	const chosen = first && last ? spanBetween(map, first, last) : null;
	return (
		<div ref={home}>
			<canvas
				tabIndex={0}
				role="img"
				style={{ width: "100%", height: `${HEIGHT + 34}px` }}
				aria-label={`${map.seconds} seconds in rows of ${quantity(map.step, "ns")}. Arrows move a cell, Enter chooses the first and the last one.`}
				onPointerMove={(event) => setChoice({ at: point(event), first, last })}
				onPointerDown={(event) => choose(point(event))}
				onPointerUp={(event) => {
					const place = point(event);
					const moved = place && first && (place.second !== first.second || place.row !== first.row);
					if (moved && !last) choose(place);
				}}
				onPointerLeave={() => setChoice({ at: null, first, last })}
				onKeyDown={keys}
			/>
			<p class="quiet sub-second-words" role="status">
				{at &&
					`${momentWords(momentOf(map, at), 1e6, whole.value.from)}: ${value === null ? "nothing recorded" : counted(value, { y: "", weight: map.unit === "B" ? "bytes" : "count" })}`}
				{first && !last && " · choose the last cell"}
				{chosen && (
					<>
						{" "}
						· {spanWords(chosen, whole.value.from)}, {lengthWords(chosen.until - chosen.from)}{" "}
						<button type="button" class="small show-range" onClick={() => setSpan(spec, chosen)}>
							Show this time
						</button>
					</>
				)}
				{" \u00a0"}
			</p>
		</div>
	);
}
