// SPDX-License-Identifier: Apache-2.0
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { close, compared, edit, focus, type GraphSpec, sheet, spanOf, whole } from "../../api/worksheet";
import { alertFrom, draft } from "../alerts-now";
import { heightOf, place, resize, shift } from "../arrangement";
import { DifferenceView } from "../dialogs/compare";
import { isOfEvents } from "../graph/drill";
import { GraphView } from "../graph/graph";
import { toggleSubSecond } from "../graph/keys";
import { stateOf } from "../graph/state";
import { offline, view } from "../session";
import { jump, sync, syncAll } from "../time-navigation";
import { spanWords } from "../times";
import { follow } from "./drag";
import { exportCsv, exportPng } from "./export";

/** A graph's place on the page: moved, made wider and higher, synchronized, exported, closed. */
export function Frame({ spec }: { spec: GraphSpec }) {
	const home = useRef<HTMLElement>(null);
	useLayoutEffect(() => {
		if (focus.peek() === spec.id) home.current?.focus({ preventScroll: true });
	}, []);
	useEffect(() => {
		if (focus.peek() === spec.id) home.current?.scrollIntoView({ block: "nearest" });
	}, []);
	const choose = () => {
		if (focus.value !== spec.id) focus.value = spec.id;
	};
	const change = (part: Partial<GraphSpec>) => edit(spec.id, part);
	const name = spec.statistic;
	return (
		<section
			ref={home}
			class={`frame ${spec.width === 2 ? "wide" : "narrow"} ${focus.value === spec.id ? "focused" : ""}`}
			data-graph={spec.id}
			data-statistic={name}
			aria-label={name}
			tabIndex={-1}
			onFocusIn={choose}
			onPointerDown={choose}
		>
			<div class="frame-bar" role="toolbar" aria-label={`The graph ${name}`}>
				<Handle spec={spec} />
				{!spec.synced && <span class="own-time">its own time: {spanWords(spanOf(spec), whole.value.from)}</span>}
				<span class="room" />
				{!offline.value && (
					<>
						<button
							type="button"
							class="small"
							title="The smallest value, and the next (m)"
							onClick={() => void jump(spec, "min")}
						>
							min
						</button>
						<button
							type="button"
							class="small"
							title="The largest value, and the next (M)"
							onClick={() => void jump(spec, "max")}
						>
							max
						</button>
					</>
				)}
				<button
					type="button"
					class="small"
					aria-pressed={spec.synced}
					title="Share the worksheet's time, or have its own (s)"
					onClick={() => sync(spec)}
				>
					sync
				</button>
				{!spec.synced && (
					<button type="button" class="small" title="All graphs show this time (S)" onClick={() => syncAll(spec)}>
						sync all
					</button>
				)}
				{!offline.value && (
					<>
						<button type="button" class="small" title="An alert on this statistic (N)" onClick={() => alertOn(spec)}>
							Alert
						</button>
						{isOfEvents(spec) && (
							<button
								type="button"
								class="small"
								aria-pressed={stateOf(spec.id).subSecond.value}
								title="Second against offset in the second (E)"
								onClick={() => toggleSubSecond(spec)}
							>
								sub-second
							</button>
						)}
						<button type="button" class="small" title="Numbers as CSV (e)" onClick={() => void exportCsv(spec)}>
							CSV
						</button>
					</>
				)}
				<button
					type="button"
					class="small"
					title="Picture as PNG (p)"
					onClick={() => home.current && exportPng(home.current, spec)}
				>
					PNG
				</button>
				<button
					type="button"
					class="small widen"
					title={spec.width === 2 ? "Half as wide (/)" : "As wide as the page (/)"}
					aria-label={spec.width === 2 ? "Half as wide" : "As wide as the page"}
					onClick={() => change({ width: spec.width === 2 ? 1 : 2 })}
				>
					{spec.width === 2 ? "▭▭" : "▭"}
				</button>
				<button
					type="button"
					class="small close"
					aria-label={`Close ${name}`}
					title="Close (x)"
					onClick={() => close(spec.id)}
				>
					×
				</button>
			</div>
			<GraphView spec={spec} />
			{compared.value && <DifferenceView spec={spec} />}
			<Edge spec={spec} />
		</section>
	);
}

/** Write an alert on what a graph shows; its limit is the lower end of the marked values. */
export function alertOn(spec: GraphSpec): void {
	const marked = stateOf(spec.id).mark.peek();
	draft.value = alertFrom(spec, marked?.mapped ? marked.low : null);
	view.value = "alerts";
}

/** What a graph is moved by, with the pointer or the arrows. */
function Handle({ spec }: { spec: GraphSpec }) {
	const drag = (event: PointerEvent) => {
		follow(event, (now) => {
			const under = document
				.elementsFromPoint(now.clientX, now.clientY)
				.map((each) => each.closest<HTMLElement>("[data-graph]")?.dataset.graph)
				.find((id) => id !== undefined && id !== spec.id);
			if (under !== undefined)
				place(
					spec.id,
					sheet.value.graphs.findIndex((each) => each.id === under),
				);
		});
	};
	const keys = (event: KeyboardEvent) => {
		const by = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 }[event.key];
		if (!by) return;
		event.preventDefault();
		event.stopPropagation();
		shift(spec, by);
		const handle = event.currentTarget as HTMLElement;
		// what is moved loses the focus; it has it again before another key can come
		queueMicrotask(() => handle.focus());
	};
	return (
		<button
			type="button"
			class="small handle"
			aria-label={`Move ${spec.statistic}: arrows, or drag`}
			title="Move: drag, or the arrow keys (< >)"
			onPointerDown={drag}
			onKeyDown={keys}
		>
			⠿
		</button>
	);
}

/** The lower edge, by which a graph is made higher. */
function Edge({ spec }: { spec: GraphSpec }) {
	const drag = (event: PointerEvent) => {
		event.preventDefault();
		const [start, height] = [event.clientY, heightOf(spec)];
		follow(event, (now) => resize(spec, height + now.clientY - start));
	};
	const keys = (event: KeyboardEvent) => {
		const by = { ArrowUp: -20, ArrowDown: 20 }[event.key];
		if (!by) return;
		event.preventDefault();
		event.stopPropagation();
		resize(spec, heightOf(spec) + by);
	};
	return (
		// biome-ignore lint/a11y/useSemanticElements: a splitter has no element of its own
		<div
			class="edge"
			role="separator"
			aria-orientation="horizontal"
			aria-label={`Height of ${spec.statistic}`}
			aria-valuenow={Math.round(heightOf(spec))}
			aria-valuemin={80}
			aria-valuemax={1600}
			tabIndex={0}
			title="Height: drag, or the arrow keys"
			onPointerDown={drag}
			onKeyDown={keys}
		/>
	);
}
