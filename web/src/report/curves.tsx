// SPDX-License-Identifier: Apache-2.0
import type { CoverSide } from "../generated/report";
import { printing, theme } from "../lib/theme";
import { type CurvePoint, curveOf, type Spot } from "./cover-data";
import { report } from "./state";

const LEFT = 46;
const BOTTOM = 30;
const TOP = 16;

/** The values of both arms over the factor of a matrix, with their intervals; the cell itself is marked. */
export function Curves({ spot, width, height }: { spot: Spot; width: number; height: number }) {
	const { factor, points } = curveOf(spot);
	if (points.length === 0) return null;
	const arms = spot.cell.sides.map((side) => side.arm);
	const all = points.flatMap((point) => point.cell.sides.flatMap((side) => [side.value, side.low, side.high]));
	const known = all.filter((value): value is number => value !== null);
	if (known.length === 0) return null;
	const y = scaleOf(known, height - BOTTOM, TOP);
	const step = (width - LEFT - 12) / Math.max(1, points.length - 1);
	const x = (at: number) => LEFT + 4 + at * step;
	const [from, to] = palette();
	const here = points.findIndex((point) => point.isHere);
	const label = `${spot.cell.quantity} of ${arms.join(" and ")} over ${factor}`;
	const shown = labelled(points.length);
	return (
		<svg
			class="curves"
			width={width}
			height={height}
			viewBox={`0 0 ${width} ${height}`}
			role="img"
			aria-label={label}
			style={`--arm0: ${from}; --arm1: ${arms.length > 1 ? to : from}`}
		>
			{y.ticks.map((tick) => (
				<g key={tick}>
					<line class="axis" x1={LEFT} x2={width - 6} y1={y.at(tick)} y2={y.at(tick)} />
					<text x={LEFT - 5} y={y.at(tick) + 4} text-anchor="end">
						{short(tick)}
					</text>
				</g>
			))}
			{here >= 0 && <line class="here" x1={x(here)} x2={x(here)} y1={TOP} y2={height - BOTTOM} />}
			{arms.map((arm, place) => (
				<Arm key={arm} arm={arm} place={place} points={points} x={x} y={y.at} />
			))}
			{points.map((point, at) =>
				shown(at) || point.isHere ? (
					<text key={point.head} x={x(at)} y={height - BOTTOM + 13} text-anchor="middle">
						{shown(at) || !shown(at - 1) ? point.head : ""}
					</text>
				) : null,
			)}
			<text x={4} y={height - 3}>
				{spot.cell.quantity}
			</text>
			<text x={width - 6} y={height - 3} text-anchor="end">
				{factor}
			</text>
			{arms.map((arm, place) => (
				<text key={arm} class={`name arm${place}`} x={LEFT + place * ((width - LEFT) / 2)} y={10}>
					{arm.length > 22 ? `${arm.slice(0, 21)}…` : arm}
				</text>
			))}
		</svg>
	);
}

function Arm(props: {
	arm: string;
	place: number;
	points: CurvePoint[];
	x: (at: number) => number;
	y: (value: number) => number;
}) {
	const { arm, place, points, x, y } = props;
	const sides = points.map((point) => point.cell.sides.find((side) => side.arm === arm));
	const line = pathOf(sides, x, y);
	return (
		<g class={`arm${place}`}>
			<path d={line} />
			{sides.map((side, at) => {
				if (side?.value === null || side === undefined) return null;
				const head = points[at];
				return (
					<g key={head?.head}>
						{side.low !== null && side.high !== null && (
							<path class="interval" d={`M${x(at)} ${y(side.low)}V${y(side.high)}`} />
						)}
						<circle cx={x(at)} cy={y(side.value)} r={head?.isHere ? 4.5 : 2.2} />
					</g>
				);
			})}
		</g>
	);
}

/** A line through the known values; a missing one breaks it. */
function pathOf(
	sides: readonly (CoverSide | undefined)[],
	x: (at: number) => number,
	y: (value: number) => number,
): string {
	let path = "";
	let isOpen = false;
	sides.forEach((side, at) => {
		if (!side || side.value === null) {
			isOpen = false;
			return;
		}
		path += `${isOpen ? "L" : "M"}${x(at).toFixed(1)} ${y(side.value).toFixed(1)}`;
		isOpen = true;
	});
	return path;
}

/** From zero, or by the logarithm where values span more than twentyfold. */
function scaleOf(values: readonly number[], bottom: number, top: number) {
	const [low, high] = [Math.min(...values), Math.max(...values)];
	if (low > 0 && high / low > 20) {
		const [first, last] = [Math.log10(low), Math.log10(high)];
		const at = (value: number) => bottom - ((Math.log10(value) - first) / (last - first)) * (bottom - top);
		return { at, ticks: logTicks(low, high) };
	}
	const [start, end] = [Math.min(0, low), Math.max(0, high) || 1];
	const at = (value: number) => bottom - ((value - start) / (end - start)) * (bottom - top);
	const rough = (end - start) / 3;
	const power = 10 ** Math.floor(Math.log10(rough));
	const step = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
	const first = Math.ceil(start / step);
	const ticks = Array.from({ length: Math.floor(end / step) - first + 1 }, (_, i) => (first + i) * step);
	return { at, ticks };
}

/** Powers of ten between two values; of few also three times a power, of many every second. */
export function logTicks(low: number, high: number): number[] {
	const [first, last] = [Math.floor(Math.log10(low)), Math.floor(Math.log10(high))];
	const powers = Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
	const within = (factors: readonly number[]) =>
		powers.flatMap((power) => factors.map((factor) => factor * power)).filter((value) => value >= low && value <= high);
	const decades = within([1]);
	if (decades.length > 4) return decades.filter((_, i) => i % 2 === 0);
	return decades.length < 3 ? within([1, 3]) : decades;
}

/** Which heads are written: all of up to eight, else about eight. */
function labelled(count: number): (at: number) => boolean {
	const every = Math.ceil(count / 8);
	return (at) => at >= 0 && at % every === 0;
}

const short = (value: number) => {
	const size = Math.abs(value);
	if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
	return size >= 10_000 ? `${+(value / 1e3).toPrecision(3)}k` : String(+value.toPrecision(3));
};

/** The colours of the first two arms in the report's charts. */
function palette(): [string, string] {
	const config = report.value.themes[printing.value ? "light" : theme.value] as
		| { range?: { category?: string[] } }
		| undefined;
	const colours = config?.range?.category ?? [];
	return [colours[0] ?? "currentColor", colours[1] ?? "currentColor"];
}
