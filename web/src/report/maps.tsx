// SPDX-License-Identifier: Apache-2.0

import { signal } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import type { MapCell, Maps } from "../generated/report";
import { Group, MapControls } from "../heatmap/app";
import { firstChoice, kind, page, span } from "../heatmap/state";
import { palettes } from "../lib/theme";
import { CellChoice, Unpacked } from "./lazy-section";
import { groupOf, loadMaps, mapPlace, maps, repetitions } from "./map-data";
import { RunButton } from "./parts";
import { report } from "./state";

/** Heat maps of the runs with recorded I/Os: one cell at a time, its variants side by side. */
export const RunMaps = () => (
	<Unpacked id="maps" title="Heat maps" found={maps.value} load={loadMaps} show={(all) => <Chosen all={all} />} />
);

function Chosen({ all }: { all: Maps }) {
	return (
		<>
			<p class="quiet">
				Time runs to the right, colour says how many I/Os. Maps of a cell share their axes and their scale of colour, so
				that they can be compared by eye.
			</p>
			{all.notes.map((note) => (
				<p key={note} class="quiet">
					{note}
				</p>
			))}
			<CellMaps all={all} place={mapPlace.value} id="map" isChoice />
		</>
	);
}

/** The maps of a cell with their controls; `isChoice`: other cells can be chosen. */
export function CellMaps(props: { all: Maps; place: number; id: string; isChoice?: boolean }) {
	const { all, place, id, isChoice = false } = props;
	const [asked, setRepetition] = useState(1);
	const [y, setY] = useState("latency");
	const cell = all.cells[place];
	const known = cell ? repetitions(cell) : [];
	const repetition = known.includes(asked) ? asked : (known[0] ?? 1);
	return (
		<>
			{cell && (
				<>
					<div class="chooser no-print">
						{isChoice && (
							<CellChoice
								id={`${id}-cell`}
								cells={all.cells}
								place={place}
								onPlace={(at) => {
									mapPlace.value = at;
								}}
							/>
						)}
						{known.length > 1 && (
							<label>
								repetition{" "}
								<select
									id={`${id}-repetition`}
									value={String(repetition)}
									onChange={(event) => setRepetition(Number(event.currentTarget.value))}
								>
									{known.map((each) => (
										<option key={each}>{each}</option>
									))}
								</select>
							</label>
						)}
						<label>
							map{" "}
							<select id={`${id}-y`} value={y} onChange={(event) => setY(event.currentTarget.value)}>
								{["latency", "offset", "size", "all"].map((each) => (
									<option key={each}>{each}</option>
								))}
							</select>
						</label>
					</div>
					<CellView key={`${place} ${repetition} ${y}`} all={all} cell={cell} repetition={repetition} y={y} />
				</>
			)}
		</>
	);
}

function CellView({ all, cell, repetition, y }: { all: Maps; cell: MapCell; repetition: number; y: string }) {
	const choices = useMemo(() => {
		const groups = cell.maps.flatMap((part) => {
			const group = y === "all" || part.group.y === y ? groupOf(part, repetition) : null;
			return group ? [group] : [];
		});
		palettes.value = all;
		page.value = { ...page.peek(), groups };
		span.value = { from: 0, to: Math.max(1, ...groups.map((group) => group.columns * group.interval_ns)) };
		kind.value = groups[0]?.color ?? "rank";
		return groups.map((group) => ({ group, choice: signal(firstChoice(group)) }));
	}, [all, cell, repetition, y]);
	const runs = [...new Set(cell.maps.flatMap((part) => part.of.filter((one) => one.repetition === repetition)))];
	const ids = [...new Set(runs.map((one) => report.value.runs.ids[one.run] ?? ""))];
	return (
		<div class="maps side-by-side">
			<MapControls />
			{choices.map(({ group, choice }) => (
				<Group key={group.title} group={group} choice={choice} level="h3" />
			))}
			<p class="quiet">
				Runs:{" "}
				{ids.map((id) => (
					<span key={id}>
						<RunButton id={id} />{" "}
					</span>
				))}
			</p>
		</div>
	);
}
