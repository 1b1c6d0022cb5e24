// SPDX-License-Identifier: Apache-2.0
import { useRef } from "preact/hooks";
import { compared, type Span, time, whole } from "../../api/worksheet";
import { tooltip } from "../../canvas/tooltip";
import { visible } from "../../lib/names";
import { lineSpan, lineValue, raisedLines } from "../alerts-now";
import { lineOf, markSpan, marks, wordsOf } from "../marks";
import { showSpan, showWhole } from "../time-navigation";
import { lengthOf, moved, spanWords } from "../times";
import { follow } from "./drag";
import "./overview.css";
import { StripChart, stripLabel, stripWords, useStrip } from "./strip-chart";

/** The shown part can be moved if it is less than this share of the strip: a live recording grows after all was shown. */
const HANDLE = 0.95;

/** What is shown after one end of it was dragged to a moment. */
export function resized(shown: Span, all: Span, end: "from" | "until", moment: number): Span {
	const least = lengthOf(all) / 500;
	return end === "from"
		? { ...shown, from: Math.max(all.from, Math.min(moment, shown.until - least)) }
		: { ...shown, until: Math.min(all.until, Math.max(moment, shown.from + least)) };
}

/** What is shown after a drag over the strip from one moment to another: the part moved, or a new part; null for hardly any movement. */
export function dragged(shown: Span, all: Span, start: number, end: number): Span | null {
	const taken = start >= shown.from && start < shown.until && lengthOf(shown) < HANDLE * lengthOf(all);
	if (taken) return moved(shown, all, (end - start) / lengthOf(shown));
	if (Math.abs(end - start) <= lengthOf(all) / 500) return null;
	const inside = (moment: number) => Math.min(all.until, Math.max(all.from, moment));
	return { from: inside(Math.min(start, end)), until: inside(Math.max(start, end)) };
}

/**
 * All that was recorded: rate and p99, losses, gaps, marks and alerts. The part that is shown can be moved and resized, another part
 * chosen by a drag, and all of it by a double click.
 */
export function Overview() {
	const home = useRef<HTMLDivElement>(null);
	const strip = useStrip();
	const all = whole.value;
	const at = (event: PointerEvent) => {
		const box = home.current?.getBoundingClientRect();
		return box ? all.from + ((event.clientX - box.left) / box.width) * lengthOf(all) : all.from;
	};
	const drag = (event: PointerEvent) => {
		const target = event.target as HTMLElement;
		if (event.button !== 0 || target.closest(".mark")) return;
		tooltip(null, event, null, null);
		const { end } = target.dataset;
		const start = at(event);
		const shown = time.peek();
		follow(event, (now) => {
			const span =
				end === "from" || end === "until" ? resized(shown, all, end, at(now)) : dragged(shown, all, start, at(now));
			if (span) showSpan(span);
		});
	};
	const point = (event: PointerEvent) => {
		if (event.buttons === 0) tooltip(null, event, null, stripWords(strip, at(event), all));
	};
	return (
		// biome-ignore lint/a11y/useSemanticElements: it is no form
		<div
			class="overview"
			ref={home}
			role="group"
			aria-label={`All that was recorded, ${spanWords(all, all.from)}: ${stripLabel(strip)}. Drag to choose a part of it.`}
			onPointerDown={drag}
			onPointerMove={point}
			onPointerLeave={(event) => tooltip(null, event, null, null)}
			onDblClick={showWhole}
		>
			<StripChart strip={strip} all={all} />
			{marks.value.gaps.map((gap) => (
				<span key={gap.from} class="gap" style={place(gap)} title="nothing was recorded" />
			))}
			{marks.value.found.map((mark, i) => {
				const span = markSpan(mark, all.until);
				return (
					<button
						key={`${mark.label} ${i}`}
						type="button"
						class={`mark ${mark.kind === "user" ? "user" : wordsOf(mark).verdict.toLowerCase()}`}
						tabIndex={-1}
						style={place(span)}
						title={`${visible(lineOf(mark))}: show its time`}
						aria-label={visible(mark.label)}
						onClick={() => showSpan(span)}
					/>
				);
			})}
			{raisedLines.value.map((line) => {
				const span = lineSpan(line);
				if (!span || line.at_ns === null) return null;
				const words = `${line.name} was raised${line.value === null ? "" : ` at ${lineValue(line)}`}: show its time`;
				return (
					<button
						key={`${line.name} ${line.time_ns}`}
						type="button"
						class="mark alert"
						tabIndex={-1}
						style={place({ from: line.at_ns, until: line.at_ns })}
						title={words}
						aria-label={words}
						onClick={() => showSpan(span)}
					/>
				);
			})}
			<Windows />
		</div>
	);
}

/** The part that is shown, and the time it is compared with: drawn alone while time moves. */
function Windows() {
	const shown = time.value;
	const other = compared.value;
	return (
		<>
			{other && <span class="window other" style={place({ from: other.from, until: other.from + lengthOf(shown) })} />}
			<span class="window" style={place(shown)}>
				<span class="end" data-end="from" />
				<span class="end" data-end="until" />
			</span>
		</>
	);
}

/** The position of a span on the strip. */
function place(span: Span): Record<string, string> {
	const all = whole.value;
	const [from, until] = [span.from, span.until].map((at) => Math.min(1, Math.max(0, (at - all.from) / lengthOf(all))));
	return { left: `${100 * (from ?? 0)}%`, width: `${100 * ((until ?? 1) - (from ?? 0))}%` };
}
