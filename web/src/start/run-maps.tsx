// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "../api/client";
import type { Drawable } from "../api/question";
import { type Cells, fill, fullest, geometry, shades, wholeAxis } from "../canvas/cells";
import { paint } from "../canvas/paint";
import { scaleOf } from "../canvas/scale";
import type { Axis } from "../canvas/spaces";
import type { CellRun } from "../generated/api";
import type { HeatMapGroup } from "../generated/maps";
import { messageOf } from "../lib/errors";
import { colours, theme } from "../lib/theme";

const HEIGHT = 190;
const [LEFT, RIGHT, TOP, BOTTOM] = [70, 88, 6, 26];
const COLUMNS = 150;
const CROP = 0.001;

/** The heat maps of two runs on one axis, one length of time and one scale of colour. */
export function RunMaps({ runs }: { runs: readonly (CellRun | null)[] }) {
	const canvases = useRef<(HTMLCanvasElement | null)[]>([]);
	const [groups, setGroups] = useState<(HeatMapGroup | null)[]>([]);
	const [problem, setProblem] = useState("");
	const key = runs.map((run) => run && `${run.recording} ${run.from_ns}`).join();
	useEffect(() => {
		const stop = new AbortController();
		const longest = Math.max(...runs.map((run) => (run?.until_ns ?? 0) - (run?.from_ns ?? 0)));
		if (!(longest > 0)) return undefined;
		const interval = `${Math.max(1e6, Math.ceil(longest / COLUMNS / 1e6) * 1e6)}ns`;
		const asked = runs.map(async (run) => {
			if (!run) return null;
			const time = { from: run.from_ns, to: run.until_ns, interval };
			const words = { recording: run.recording, statistic: run.graph, drawn: "true", lines: "false", ...time };
			const answer = await ask<Drawable>("query", words, stop.signal);
			return answer.kind === "map" ? answer.group : null;
		});
		Promise.all(asked)
			.then(setGroups)
			.catch((error: unknown) => {
				if (!stop.signal.aborted) setProblem(messageOf(error));
			});
		return () => stop.abort();
	}, [key]);
	useEffect(() => {
		paintAlike(canvases.current, groups);
	}, [groups, theme.value]);
	if (problem) return <p class="problem">{problem}</p>;
	if (runs.every((run) => run === null)) return <p class="quiet">These runs have no recording that is served.</p>;
	return (
		<div class="sides">
			{runs.map((run, i) => (
				<div key={run?.run ?? i} class="side">
					{run ? (
						<canvas
							ref={(canvas) => {
								canvases.current[i] = canvas;
							}}
							role="img"
							aria-label={`Heat map of ${run.graph}, run ${run.run}`}
						/>
					) : (
						<p class="quiet">Not recorded.</p>
					)}
				</div>
			))}
		</div>
	);
}

/** The axis that contains the axes of all groups. */
export function commonAxis(groups: readonly HeatMapGroup[]): Axis | null {
	const axes = groups.map((group) => wholeAxis(group, group.y_scale, CROP));
	const [first] = axes;
	if (!first) return null;
	return {
		scale: first.scale,
		low: Math.min(...axes.map((axis) => axis.low)),
		high: Math.max(...axes.map((axis) => axis.high)),
	};
}

function paintAlike(canvases: readonly (HTMLCanvasElement | null)[], groups: readonly (HeatMapGroup | null)[]): void {
	const some = groups.filter((group) => group !== null);
	const axis = commonAxis(some);
	if (!axis) return;
	const span = { from: 0, to: Math.max(...some.map((group) => group.columns * group.interval_ns)) };
	const pictures = groups.map((group, i) => {
		const canvas = canvases[i];
		const map = group?.maps[0];
		if (!canvas || !group || !map) return null;
		const width = Math.max(240, canvas.parentElement?.clientWidth ?? 0);
		const box = { left: LEFT, top: TOP, width: width - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM };
		const cells: Cells = fill(map.cells, geometry(group, span, axis, box, { wide: 2, high: 3 }));
		return { canvas, group, map, cells, box, width };
	});
	const drawn = pictures.filter((picture) => picture !== null);
	const maps = drawn.map((picture) => picture.cells);
	const scale = scaleOf(maps.map(shades), "rank");
	for (const { canvas, group, map, cells, box, width } of drawn) {
		const ratio = devicePixelRatio;
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round((HEIGHT + 20) * ratio);
		canvas.style.width = `${width}px`;
		canvas.style.height = `${HEIGHT + 20}px`;
		const context = canvas.getContext("2d");
		if (!context) continue;
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		const at = fullest(maps.slice(0, 1));
		const rest = { lines: false, at, brush: null, colours: colours.value };
		paint(context, { group, map, cells, scale, span, axis, box, ...rest });
	}
}
