import { useRef } from "preact/hooks";
import { markSpan, marks } from "../../model/marks";
import { showSpan } from "../../model/moving";
import { lengthOf, spanWords } from "../../model/times";
import { type Span, sheet, time, whole } from "../../model/worksheet";
import { follow } from "./drag";

/** All that was recorded as a strip: its gaps and marks, and the part that is shown, which can be moved. */
export function Overview() {
	const strip = useRef<HTMLDivElement>(null);
	const all = whole.value;
	const shown = time.value;
	const place = (span: Span): Record<string, string> => {
		const [from, until] = [span.from, span.until].map((at) =>
			Math.min(1, Math.max(0, (at - all.from) / lengthOf(all))),
		);
		return { left: `${100 * (from ?? 0)}%`, width: `${100 * ((until ?? 1) - (from ?? 0))}%` };
	};
	const at = (event: PointerEvent) => {
		const box = strip.current?.getBoundingClientRect();
		return box ? all.from + ((event.clientX - box.left) / box.width) * lengthOf(all) : all.from;
	};
	const drag = (event: PointerEvent) => {
		if (event.button !== 0 || (event.target as HTMLElement).closest(".mark")) return;
		const start = at(event);
		const inside = start >= shown.from && start < shown.until && !(lengthOf(shown) >= lengthOf(all));
		follow(event, (now) => {
			const by = at(now) - start;
			if (inside) showSpan({ from: shown.from + by, until: shown.until + by });
			else if (Math.abs(by) > lengthOf(all) / 500)
				showSpan({ from: Math.min(start, start + by), until: Math.max(start, start + by) });
		});
	};
	const { compare } = sheet.value;
	return (
		<div
			class="overview"
			ref={strip}
			onPointerDown={drag}
			title={`${spanWords(all, all.from)}: drag to choose a part of it`}
		>
			{marks.value.gaps.map((gap) => (
				<span key={gap.from} class="gap" style={place(gap)} title="nothing was recorded" />
			))}
			{marks.value.found.map((mark, i) => {
				const span = markSpan(mark, all.until);
				return (
					<button
						key={`${mark.label} ${i}`}
						type="button"
						class="mark"
						tabIndex={-1}
						style={place(span)}
						title={`${mark.label}: show its time`}
						aria-label={mark.label}
						onClick={() => showSpan(span)}
					/>
				);
			})}
			{compare && (
				<span class="window other" style={place({ from: compare.from, until: compare.from + lengthOf(shown) })} />
			)}
			<span class="window" style={place(shown)} />
		</div>
	);
}
