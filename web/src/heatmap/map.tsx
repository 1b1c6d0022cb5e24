// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from "preact/hooks";
import { type Cells, fullest, snapped, spotAt, wholeAxis } from "../canvas/cells";
import { lostBars, lostIn, lostWords } from "../canvas/lost";
import { overlayLevel } from "../canvas/overlays";
import { paint, stripOf } from "../canvas/paint";
import { areaOf, type Box, moveSpan, xTime, yValue, zoomAxis, zoomSpan } from "../canvas/spaces";
import { percent, quantity } from "../canvas/ticks";
import { tooltip } from "../canvas/tooltip";
import type { HeatMapCounts, HeatMapGroup } from "../generated/maps";
import { colours } from "../lib/theme";
import { type ChoiceSignal, type Drawn, drawn, embeds, kind, span, wholeSpan } from "./state";
import { amount, range } from "./who";

const HEIGHT = 260;
const [LEFT, RIGHT, TOP, BOTTOM] = [84, 92, 6, 26];
/** After this time without movement the scale of colour is computed again. */
const SETTLE = 250;

/** The maps of a group with their difference, on canvases of one geometry. */
export function MapView({ group, choice }: { group: HeatMapGroup; choice: ChoiceSignal }) {
	const home = useRef<HTMLDivElement>(null);
	const now = useRef<{ drawn: Drawn | null; box: Box }>({ drawn: null, box: { left: 0, top: 0, width: 1, height: 1 } });
	const moving = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
	const [first, second] = group.maps;
	const names =
		group.difference && second
			? [...group.maps.map((map) => map.label), `${second.label} minus ${first?.label}`]
			: group.maps.map((map) => map.label);

	const draw = () => {
		const place = home.current;
		if (!place) return;
		const canvases = [...place.querySelectorAll("canvas")];
		const width = Math.max(260, place.querySelector("figure")?.clientWidth ?? place.clientWidth);
		const box = { left: LEFT, top: TOP, width: width - LEFT - RIGHT, height: HEIGHT };
		const { axis, lines, brush } = choice.value;
		const frozen = moving.current === undefined ? null : now.current.drawn;
		const made = drawn(group, span.value, axis, box, kind.value, frozen);
		now.current = { drawn: made, box };
		const at = fullest(made.cells.slice(0, group.maps.length));
		for (const [i, canvas] of canvases.entries()) {
			const cells = made.cells[i];
			const context = canvas.getContext("2d");
			if (!cells || !context) continue;
			const ratio = devicePixelRatio;
			const map = group.maps[i] ?? null;
			const height = TOP + HEIGHT + stripOf(map) + BOTTOM;
			canvas.width = Math.round(width * ratio);
			canvas.height = Math.round(height * ratio);
			canvas.style.width = `${width}px`;
			canvas.style.height = `${height}px`;
			context.setTransform(ratio, 0, 0, ratio, 0, 0);
			const scale = map ? made.scale : (made.difference ?? made.scale);
			const area = brush && brush.map === i ? brush.area : null;
			const picture = {
				group,
				map,
				cells,
				scale,
				span: span.value,
				axis,
				box,
				colours: colours.value,
				lines,
				at,
				brush: area,
			};
			paint(context, picture);
			const words = place.querySelectorAll("[data-words]")[i];
			if (words) words.textContent = sentence(i, cells);
		}
	};
	/** Whether one of the spans is wide enough to be seen. */
	const seen = (spans: [number, number][]) => {
		const pixel = (span.value.to - span.value.from) / now.current.box.width / group.interval_ns;
		const [from, to] = [span.value.from / group.interval_ns, span.value.to / group.interval_ns];
		return spans.some(([start, end]) => Math.min(end, to) - Math.max(start, from) >= pixel);
	};
	const sentence = (i: number, cells: Cells) => {
		const map = group.maps[i];
		if (!map) return "blue: fewer, orange: more";
		const { axis, lines } = choice.value;
		const level = lines ? overlayLevel(map, group, span.value) : undefined;
		return [
			`${amount(group, cells.total)} shown`,
			`${quantity(cells.joined * group.interval_ns, "ns")} a column`,
			map.begins,
			cells.above > 0 &&
				`${amount(group, cells.above)} (${percent(cells.above / Math.max(1, cells.total))}) above ${quantity(axis.high, group.unit)}`,
			cells.below > 0 && `${amount(group, cells.below)} below ${quantity(axis.low, group.unit)}`,
			level && `lines of each ${quantity(level.joined * group.interval_ns, "ns")}`,
			missing(map, cells),
			seen(map.gaps) && "shaded: no I/O, though some was expected",
			seen(map.unrecorded) && "hatched: not recorded",
			...map.notes,
		]
			.filter(Boolean)
			.join(" · ");
	};
	/** While the map moves its scale of colour stays; when it rests, the scale is computed again. */
	const moved = () => {
		clearTimeout(moving.current);
		moving.current = setTimeout(() => {
			moving.current = undefined;
			latest.current();
		}, SETTLE);
	};

	// the group may be another one by the time that something is drawn again
	const latest = useRef(draw);
	latest.current = draw;
	useEffect(draw);
	useEffect(() => {
		const observer = new ResizeObserver(() => latest.current());
		if (home.current) observer.observe(home.current);
		return () => observer.disconnect();
	}, []);

	// what is drawn depends on these
	void [span.value, kind.value, colours.value, choice.value];

	return (
		<div class="group" ref={home}>
			{names.map((name, i) => (
				<figure key={name}>
					<figcaption>
						<strong>{name}</strong> <span data-words />
					</figcaption>
					<canvas tabIndex={0} role="img" aria-label={`${group.title} of ${name}`} {...pointer(i)} />
				</figure>
			))}
		</div>
	);

	function pointer(i: number) {
		let start: [number, number] | null = null;
		const at = (event: MouseEvent): [number, number] => [event.offsetX, event.offsetY];
		const mark = (event: MouseEvent) => {
			const cells = now.current.drawn?.cells[i];
			if (!start || !cells || i >= group.maps.length) return;
			const { axis } = choice.value;
			const area = snapped(areaOf(now.current.box, span.value, axis, start, at(event)), cells, group.interval_ns);
			choice.value = { ...choice.value, brush: { map: i, area } };
		};
		return {
			onPointerDown: (event: PointerEvent) => {
				if (event.button !== 0) return;
				start = at(event);
				const shown = span.value;
				const pans = event.shiftKey;
				const element = event.currentTarget as HTMLCanvasElement;
				element.setPointerCapture(event.pointerId);
				const drag = (now: PointerEvent) => {
					if (!start || distance(start, at(now)) <= 4) return false;
					if (pans) panFrom(shown, start[0] - at(now)[0]);
					else mark(now);
					return true;
				};
				const up = (end: PointerEvent) => {
					if (!drag(end) && choice.value.brush) choice.value = { ...choice.value, brush: null };
					start = null;
					element.removeEventListener("pointermove", drag);
				};
				element.addEventListener("pointermove", drag);
				element.addEventListener("pointerup", up, { once: true });
			},
			onPointerMove: (event: PointerEvent) => tooltip(null, event, null, hover(i, ...at(event))),
			onPointerLeave: (event: PointerEvent) => tooltip(null, event, null, null),
			onWheel: (event: WheelEvent) => {
				if (embeds.value && !(event.currentTarget as HTMLElement).matches(":focus")) return;
				event.preventDefault();
				const { box } = now.current;
				const factor = 1.0015 ** (event.deltaY || event.deltaX);
				moved();
				if (event.shiftKey) zoomY(yValue(box, choice.value.axis, event.offsetY), factor);
				else zoomTime(xTime(box, span.value, event.offsetX), factor);
			},
			onDblClick: () => {
				span.value = wholeSpan.value;
			},
			onKeyDown: (event: KeyboardEvent) => {
				const length = span.value.to - span.value.from;
				const steps: Record<string, () => void> = {
					ArrowLeft: () => moveTime(-length / 8),
					ArrowRight: () => moveTime(length / 8),
					"+": () => zoomTime((span.value.from + span.value.to) / 2, 0.5),
					"-": () => zoomTime((span.value.from + span.value.to) / 2, 2),
					Escape: () => {
						choice.value = { ...choice.value, brush: null };
					},
				};
				const step = steps[event.key];
				if (!step) return;
				event.preventDefault();
				moved();
				step();
			},
		};
	}

	function zoomTime(about: number, factor: number) {
		span.value = zoomSpan(span.value, wholeSpan.value, about, factor, 8 * group.interval_ns);
	}

	/** What was shown, moved by so many px. */
	function panFrom(shown: typeof span.value, pixels: number) {
		moved();
		span.value = moveSpan(shown, wholeSpan.value, (pixels * (shown.to - shown.from)) / now.current.box.width);
	}

	function moveTime(by: number) {
		span.value = moveSpan(span.value, wholeSpan.value, by);
	}

	function zoomY(about: number, factor: number) {
		const { axis } = choice.value;
		choice.value = { ...choice.value, crop: -1, axis: zoomAxis(axis, wholeAxis(group, axis.scale), about, factor) };
	}

	/** The time of some columns, in words. */
	function times(first: number, past: number): string {
		return [first, past].map((column) => quantity(column * group.interval_ns, "ns", 6)).join(" to ");
	}

	function hover(i: number, x: number, y: number): Record<string, string> | null {
		const { box, drawn: made } = now.current;
		const cells = made?.cells[i];
		const map = group.maps[i];
		const under = y - box.top - box.height;
		if (cells && map && under >= 0 && under < stripOf(map) && x >= box.left && x < box.left + box.width) {
			const column = Math.floor((xTime(box, span.value, x) / group.interval_ns - cells.first) / cells.joined);
			const first = cells.first + column * cells.joined;
			return {
				time: times(first, first + cells.joined),
				missing: lostWords(lostIn(map.lost, first, first + cells.joined)) || "nothing",
			};
		}
		const inside = x >= box.left && x < box.left + box.width && y >= box.top && y < box.top + box.height;
		if (!cells || !inside) return null;
		const time = xTime(box, span.value, x) / group.interval_ns;
		const spot = spotAt(cells, time, yValue(box, choice.value.axis, y));
		if (!spot) return null;
		const count = cells.counts[spot.place] ?? 0;
		const words = { time: times(spot.first, spot.past), [group.y]: range(group, spot.low, spot.high) };
		if (i >= group.maps.length) return { ...words, difference: `${count > 0 ? "+" : ""}${amount(group, count)}` };
		let inColumn = 0;
		for (let k = spot.column; k < cells.counts.length; k += cells.columns) inColumn += cells.counts[k] ?? 0;
		return {
			...words,
			count: amount(group, count),
			share: `${percent(count / Math.max(1, inColumn))} of the column, ${percent(count / Math.max(1, cells.total))} of all shown`,
		};
	}
}

/** What was lost in the columns shown, by kind, and in how many; false for nothing. */
function missing(map: HeatMapCounts, cells: Cells): string | false {
	const bars = lostBars(map.lost, cells).size;
	const words = lostWords(lostIn(map.lost, cells.first, cells.first + cells.columns * cells.joined));
	return bars > 0 && `${words}: in ${bars} column${bars === 1 ? "" : "s"}`;
}

const distance = (one: [number, number], two: [number, number]) => Math.hypot(one[0] - two[0], one[1] - two[1]);
