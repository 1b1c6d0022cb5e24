// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useMemo } from "preact/hooks";
import { cursor, edit, type GraphSpec, spanOf } from "../../api/worksheet";
import { Heat } from "../../canvas/heat";
import { thousands } from "../../canvas/ticks";
import { unrecorded } from "../recorded";
import { Drill, Drills, Foot, walk } from "./list";
import { type Row, rangeWords, rowsOf, secondsOf } from "./rows";
import { stateOf } from "./state";
import { useRested } from "./use-answer";
import { chosenSum, counted, rowWords } from "./values";

/** Ranges of a map's values: two of them bound what is zoomed to. */
export function Ranges({ spec, second }: { spec: GraphSpec; second: boolean }) {
	const state = stateOf(spec.id);
	const { band } = state;
	const content = state.content.value;
	const span = useRested(() => spanOf(spec), 150, [spec]);
	const at = second ? cursor.value : null;
	const rows = useMemo(() => (content instanceof Heat ? rowsOf(content.look, at ?? span) : []), [content, span, at]);
	useLayoutEffect(() => {
		state.items.value = [];
	}, []);
	if (!(content instanceof Heat)) return null;
	const { group } = content.look;
	const { unit, y } = group;
	const shortWords = (row: Row) =>
		unit && row.high - row.low > 1 ? rangeWords(row, unit) : rowWords(row.low, row.high, unit, y);
	const inside = (row: Row) => band.value !== null && row.low >= band.value.low && row.high <= band.value.high;
	const pick = (row: Row, more: boolean) => {
		const now = band.value;
		if (more && now) band.value = { low: Math.min(now.low, row.low), high: Math.max(now.high, row.high) };
		else band.value = now && now.low === row.low && now.high === row.high ? null : { low: row.low, high: row.high };
	};
	const chosen = rows.filter(inside);
	const seconds = chosen.length > 0 ? secondsOf(content.look, at ?? span, unrecorded.value) : 0;
	const open = (row: Row, left: number, top: number) => {
		const range = inside(row) && band.value ? band.value : row;
		state.menu.value = { x: left, y: top, about: { field: y, low: range.low, high: range.high } };
	};
	return (
		<>
			{/* biome-ignore lint/a11y/noStaticElementInteractions: the keys are of the lists in it */}
			<div class="values" onKeyDown={walk}>
				<div role="listbox" aria-multiselectable="true" aria-label={`Ranges of ${y}`} tabIndex={-1}>
					{rows.map((row, i) => (
						<button
							key={row.low}
							type="button"
							role="option"
							aria-selected={inside(row)}
							class="value"
							tabIndex={i === 0 ? 0 : -1}
							title={`${rowWords(row.low, row.high, unit, y)}: ${counted(row.count, group)}`}
							style={{ gridRow: i + 1 }}
							onClick={(event) => pick(row, event.shiftKey)}
							onDblClick={() => {
								edit(spec.id, { rows: { low: row.low, high: row.high } });
								band.value = null;
							}}
							onContextMenu={(event) => {
								event.preventDefault();
								const box = event.currentTarget.getBoundingClientRect();
								open(row, event.clientX || box.left + 20, event.clientY || box.bottom);
							}}
						>
							<span class="name">{shortWords(row)}</span>
							<span class="number">{group.weight === "count" ? thousands(row.count) : counted(row.count, group)}</span>
						</button>
					))}
				</div>
				<Drills label={`Break down ranges of ${y}`}>
					{rows.map((row, i) => (
						<Drill
							key={row.low}
							name={rowWords(row.low, row.high, unit, y)}
							row={i + 1}
							open={(left, top) => open(row, left, top)}
						/>
					))}
				</Drills>
			</div>
			{chosen.length > 0 && <Foot words={chosenSum(chosen, rows, seconds, group)} />}
		</>
	);
}
