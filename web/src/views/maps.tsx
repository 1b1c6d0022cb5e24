import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { MapCell, Maps } from "../generated/report";
import { firstChoice, kind, page, span } from "../model/heatmap";
import { groupOf, loadMaps, maps, repetitions } from "../model/maps";
import { report } from "../model/state";
import { Group, MapControls } from "./heatmap";
import { Part, RunButton } from "./parts";

/** Ms after which a browser that does not say so has nothing else to do. */
const IDLE = 2000;

/** Heat maps of the runs whose I/Os were recorded: one cell at a time, its variants beside each other. */
export function RunMaps() {
	const home = useRef<HTMLDivElement>(null);
	useEffect(() => {
		if (!home.current) return;
		// unpacking waits until a reader comes near, or the page has nothing else to do: what is printed has its maps
		const idle = "requestIdleCallback" in window ? requestIdleCallback(loadMaps) : setTimeout(loadMaps, IDLE);
		const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && loadMaps(), {
			rootMargin: "600px",
		});
		observer.observe(home.current);
		return () => {
			observer.disconnect();
			if ("cancelIdleCallback" in window) cancelIdleCallback(idle as number);
			else clearTimeout(idle);
		};
	}, []);
	const found = maps.value;
	return (
		<Part id="maps" title="Heat maps">
			<div ref={home}>
				{found === undefined && <p class="waiting">Unpacking…</p>}
				{found instanceof Error && <p class="problem">{found.message}</p>}
				{found && !(found instanceof Error) && <Chosen all={found} />}
			</div>
		</Part>
	);
}

function Chosen({ all }: { all: Maps }) {
	const [place, setPlace] = useState(0);
	const [asked, setRepetition] = useState(1);
	const [y, setY] = useState("latency");
	const cell = all.cells[place];
	const known = cell ? repetitions(cell) : [];
	const repetition = known.includes(asked) ? asked : (known[0] ?? 1);
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
			{cell && (
				<>
					<div class="chooser no-print">
						{all.cells.length > 1 && (
							<label>
								cell{" "}
								<select
									id="map-cell"
									value={String(place)}
									onChange={(event) => setPlace(Number(event.currentTarget.value))}
								>
									{all.cells.map((each, i) => (
										<option key={each.title} value={String(i)}>
											{each.title}
										</option>
									))}
								</select>
							</label>
						)}
						{known.length > 1 && (
							<label>
								repetition{" "}
								<select
									id="map-repetition"
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
							<select id="map-y" value={y} onChange={(event) => setY(event.currentTarget.value)}>
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
		page.value = { generator: "", title: "", conditions: [], notes: [], light: all.light, dark: all.dark, groups };
		span.value = { from: 0, to: Math.max(1, ...groups.map((group) => group.columns * group.interval_ns)) };
		kind.value = groups[0]?.color ?? "rank";
		return groups.map((group) => ({ group, choice: signal(firstChoice(group)) }));
	}, [all, cell, repetition, y]);
	const runs = [...new Set(cell.maps.flatMap((part) => part.of.filter((one) => one.repetition === repetition)))];
	const ids = [...new Set(runs.map((one) => report.value.runs.ids[one.run] ?? ""))];
	return (
		<div class="maps beside">
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
