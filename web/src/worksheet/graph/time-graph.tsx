// SPDX-License-Identifier: Apache-2.0
import { effect } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { cursor, type GraphSpec, hover, spanOf } from "../../api/worksheet";
import type { Content } from "../../canvas/content";
import { colours } from "../../lib/theme";
import { zone } from "../../lib/zone";
import { alerts } from "../alerts-now";
import { heightOf } from "../arrangement";
import { marks as recordingMarks } from "../marks";
import { unrecorded } from "../recorded";
import { type Drawn, drawingOf } from "./drawing";
import { type Gestures, gestures } from "./gestures";
import { moves } from "./motion";
import { reveal } from "./reveal";
import { forget, stateOf } from "./state";

/**
 * A content over time: its axis, gaps, losses, marks, the selected second and the time under the pointer. `marks`: the id of the
 * state that holds its mark, where that is not the graph's own.
 */
export function TimeGraph({
	spec,
	content,
	label,
	marks = spec.id,
}: {
	spec: GraphSpec;
	content: Content | null;
	label: string;
	marks?: string;
}) {
	const home = useRef<HTMLDivElement>(null);
	const drawn = useRef<Drawn | null>(null);
	const hands = useRef<Gestures | null>(null);
	const latest = useRef({ spec, content, marks });
	latest.current = { spec, content, marks };

	// before a key or the pointer can come to it
	useLayoutEffect(() => {
		const place = home.current;
		const canvas = place?.querySelector("canvas");
		if (!place || !canvas) return undefined;
		const drawing = drawingOf(place, canvas, () => latest.current);
		drawn.current = drawing.drawn;
		hands.current = gestures(drawing.drawn, canvas);
		drawing.drawn.marked = () => requestAnimationFrame(() => reveal(place.closest(".graph")?.querySelector(".who")));
		const observer = new ResizeObserver(drawing.ask);
		observer.observe(place);
		// a graph alone fills the screen below what is above it, which may grow
		const page = place.closest("main");
		if (page) observer.observe(page);
		addEventListener("resize", drawing.ask);
		// whatever is drawn is read here, so that each change of it draws again
		const stop = effect(() => {
			void [spanOf(latest.current.spec), colours.value, stateOf(marks).mark.value, stateOf(spec.id).band.value];
			void [
				unrecorded.value,
				stateOf(spec.id).listed.value,
				heightOf(spec),
				recordingMarks.value,
				alerts.value,
				zone.value,
				moves(latest.current.spec).value,
			];
			drawing.ask();
		});
		const lines = effect(() => drawing.lines(hover.value, cursor.value));
		return () => {
			observer.disconnect();
			removeEventListener("resize", drawing.ask);
			stop();
			lines();
			drawing.end();
			hands.current?.end();
			if (marks !== spec.id) forget(marks);
		};
	}, [spec.id, spec.synced, marks]);
	useLayoutEffect(() => drawn.current?.draw());

	return (
		<div class="plot" ref={home}>
			<canvas
				tabIndex={0}
				role="img"
				aria-label={label}
				onPointerDown={(event) => hands.current?.down(event)}
				onPointerMove={(event) => hands.current?.move(event)}
				onPointerLeave={(event) => hands.current?.leave(event)}
				onContextMenu={(event) => hands.current?.menu(event)}
				onDblClick={() => hands.current?.twice()}
				onKeyDown={(event) => hands.current?.key(event)}
				onBlur={() => hands.current?.blur()}
			/>
			<div class="second" hidden />
			<div class="moment" hidden />
			<div class="cross" hidden />
		</div>
	);
}
