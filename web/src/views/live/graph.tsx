import { useEffect, useRef } from "preact/hooks";
import { type Box, xTime } from "../../canvas/spaces";
import { quantity } from "../../canvas/ticks";
import { tooltip } from "../../canvas/tooltip";
import type { SeriesAnswer, StackAnswer } from "../../generated/api";
import { colours } from "../../model/heatmap";
import { layersOf, paintLines } from "./lines";
import { add, breakdownOf, narrowed } from "./state";

const HEIGHT = 180;
const [LEFT, RIGHT, TOP, BOTTOM] = [84, 92, 6, 26];

/** A value in its readable unit: per second, a level, or a share. */
export function rate(value: number | null, unit: string): string {
	if (value === null) return "nothing recorded";
	if (unit === "1") return `${quantity(100 * value, "", 3)} %`;
	return `${quantity(value, unit.startsWith("B") ? "B" : "")}${unit.endsWith("/s") ? "/s" : ""}`;
}

/** A plain sum, "" of levels and shares, which have none. */
export function amount(total: number, unit: string): string {
	if (!unit.endsWith("/s")) return "";
	return unit === "B/s" ? quantity(total, "B") : total.toLocaleString("en").replaceAll(",", " ");
}

/** Numbers over time, one or several on each other, with their keys beside. */
export function Graph({ answer }: { answer: SeriesAnswer | StackAnswer }) {
	const canvas = useRef<HTMLCanvasElement>(null);
	const box = useRef<Box>({ left: LEFT, top: TOP, width: 1, height: HEIGHT });
	const layers = layersOf(answer);
	const draw = () => {
		const place = canvas.current;
		const context = place?.getContext("2d");
		if (!place || !context) return;
		const width = Math.max(260, place.parentElement?.clientWidth ?? 0);
		box.current = { left: LEFT, top: TOP, width: width - LEFT - RIGHT, height: HEIGHT };
		const ratio = devicePixelRatio;
		place.width = Math.round(width * ratio);
		place.height = Math.round((TOP + HEIGHT + BOTTOM) * ratio);
		place.style.width = `${width}px`;
		place.style.height = `${TOP + HEIGHT + BOTTOM}px`;
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		paintLines(context, { answer, box: box.current, colours: colours.value });
	};
	useEffect(draw);
	useEffect(() => {
		const observer = new ResizeObserver(draw);
		if (canvas.current?.parentElement) observer.observe(canvas.current.parentElement);
		return () => observer.disconnect();
	}, [answer]);
	void colours.value;
	const hover = (event: PointerEvent) => {
		const columns = layers[0]?.values.length ?? 0;
		const column = Math.floor(xTime(box.current, { from: 0, to: columns }, event.offsetX));
		const inside = column >= 0 && column < columns;
		const at = (number: number) => quantity(number * answer.interval_ns, "ns", 6);
		const words = inside && {
			time: `${at(column)} to ${at(column + 1)}`,
			...Object.fromEntries(layers.map((layer) => [layer.name, rate(layer.values[column] ?? null, answer.unit)])),
		};
		tooltip(null, event, null, words || null);
	};
	return (
		<figure>
			<canvas
				ref={canvas}
				role="img"
				aria-label={answer.statistic}
				onPointerMove={hover}
				onPointerLeave={(event) => tooltip(null, event, null, null)}
			/>
			{answer.kind === "stack" && <Keys answer={answer} />}
		</figure>
	);
}

function Keys({ answer }: { answer: StackAnswer }) {
	const field = breakdownOf(answer.statistic);
	const layers = layersOf(answer);
	return (
		<ul class="keys">
			{answer.keys.map((key, i) => (
				<li key={key.key}>
					<Swatch colour={layers[i]?.colour ?? ""} />
					<button
						type="button"
						title={`only ${key.key}`}
						onClick={() => add(narrowed(answer.statistic, field, key.key))}
					>
						{key.key}
					</button>{" "}
					<span class="quiet">{amount(key.total, answer.unit)}</span>
				</li>
			))}
			{answer.others && (
				<li>
					<Swatch colour={layers.at(-1)?.colour ?? ""} />
					<span class="quiet">
						{answer.others.keys} others {amount(answer.others.total, answer.unit)}
					</span>
				</li>
			)}
		</ul>
	);
}

function Swatch({ colour }: { colour: string }) {
	return (
		<svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">
			<rect width="10" height="10" fill={colour} />
		</svg>
	);
}
