// SPDX-License-Identifier: Apache-2.0
import { useMemo, useState } from "preact/hooks";
import type { ProfileCell } from "../generated/report";
import { type Slice, slices } from "../lib/branches";
import { walk } from "../lib/list-keyboard";
import { partOf, treeOf } from "./profile-data";

/** Callers below what they call, or above it. */
export type Look = "flame" | "icicle";

const DEPTH = 256;

/** A row's height in rem. */
const ROW = 1.15;

/** Share of the width from which on a name has room for some letters. */
const ROOM = 0.018;

interface Props {
	cell: ProfileCell;
	look: Look;
	label: string;
	/** Share of the width of each part, of all. */
	widths: readonly number[];
	/** Parts that are marked. */
	found: ReadonlySet<number>;
	/** The part that is shown alone, -1 for all. */
	zoom: number;
	onZoom: (part: number) => void;
	/** The share that is as wide as the page. */
	widest: number;
	say: (part: number) => string;
	tone: (part: number) => string;
}

/** A flame graph: a button for each part that is wide enough; the description of a part is below the graph. */
export function Flame({ cell, look, label, widths, found, zoom, onZoom, widest, say, tone }: Props) {
	const [at, setAt] = useState<number | null>(null);
	const root = useMemo(() => treeOf(cell.parts, widths), [cell, widths]);
	const shown = useMemo(() => slices(root, zoom < 0 ? "" : String(zoom), DEPTH), [root, zoom]);
	const own = zoom < 0 ? 1 : (widths[zoom] ?? 0);
	const scale = widest > 0 ? Math.min(1, own / widest) : 0;
	const rows = 1 + Math.max(0, ...shown.map((slice) => slice.depth));
	const up = look === "flame" ? 1 : -1;
	const keys = (event: KeyboardEvent) => {
		const slice = shown.find((each) => String(partOf(each.branch)) === (event.target as HTMLElement).dataset.part);
		if (event.key === "Escape" || event.key === "Z") onZoom(-1);
		else if (event.key === "z" && slice) onZoom(partOf(slice.branch));
		else if (event.key === "Backspace" && zoom >= 0) onZoom(cell.parts.parent[zoom] ?? -1);
		else return walk(event, up);
		event.preventDefault();
		event.stopPropagation();
	};
	return (
		<>
			<div class={`flame-scroll ${look}`}>
				<div
					class="parts"
					role="toolbar"
					aria-label={label}
					aria-orientation="vertical"
					style={{ height: `${ROW * rows}rem` }}
					tabIndex={-1}
					onKeyDown={keys}
					onPointerLeave={() => setAt(null)}
					onFocusOut={(event) => {
						if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setAt(null);
					}}
				>
					{own > 0 &&
						shown.map((slice) => {
							const part = partOf(slice.branch);
							const words = say(part);
							return (
								<div key={part} class="place" data-depth={slice.depth} style={box(slice, scale, look)}>
									<button
										type="button"
										class={found.has(part) ? "slice found" : "slice"}
										data-tone={tone(part)}
										data-odd={slice.depth % 2}
										data-part={part}
										tabIndex={slice.depth === 0 ? 0 : -1}
										aria-label={words}
										onPointerEnter={() => setAt(part)}
										onFocus={() => setAt(part)}
										onClick={() => onZoom(part)}
									>
										{part < 0 ? "all" : (slice.to - slice.from) * scale < ROOM ? "" : slice.branch.name}
									</button>
								</div>
							);
						})}
				</div>
			</div>
			<p class="said">{own > 0 ? say(at ?? zoom) : "None of its samples lie in the part that is shown."}</p>
		</>
	);
}

function box({ from, to, depth }: Slice, scale: number, look: Look) {
	const row = `${ROW * depth}rem`;
	const place = { left: `${100 * scale * from}%`, width: `${100 * scale * (to - from)}%` };
	return look === "flame" ? { ...place, bottom: row } : { ...place, top: row };
}
