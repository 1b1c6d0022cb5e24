// SPDX-License-Identifier: Apache-2.0
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Modal } from "../lib/modal";
import { openedSpot, type Spot, sameCell, spots } from "./cover-data";
import { Curves } from "./curves";
import { hasMaps, loadMaps, mapPlace, maps } from "./map-data";
import { CellMaps } from "./maps";
import { Badge, RunButton } from "./parts";
import { hasProfiles, loadProfiles, profilePlace, profiles } from "./profile-data";
import { Series } from "./run-panel";
import { details, go, loadDetails, opened, report } from "./state";

/** One cell of the cover, in a drawer over the page: its numbers, curves, heat maps, series and runs. */
export function CellPanel() {
	const spot = openedSpot.value;
	if (!spot || opened.value >= 0) return null;
	return (
		<Modal looks="panel wide" title="cell-title" leave={leave} back={cellOf}>
			<CellView key={place(spot)} spot={spot} />
		</Modal>
	);
}

const leave = () => go({ cell: "" });
const place = (spot: Spot) => spots.value.indexOf(spot);

/** The cell of the matrix has the focus again when its drawer is closed. */
function cellOf(before: HTMLElement | null): HTMLElement | null {
	return before?.isConnected ? before : document.querySelector<HTMLElement>(".matrix td[tabindex='0']");
}

function CellView({ spot }: { spot: Spot }) {
	const home = useRef<HTMLDivElement>(null);
	useEffect(() => {
		loadDetails();
		if (hasMaps()) loadMaps();
		if (hasProfiles()) loadProfiles();
	}, []);
	useLayoutEffect(() => home.current?.closest("dialog")?.scrollTo(0, 0), []);
	const arms = spot.cell.sides.map((side) => side.arm);
	return (
		<div class="inside" ref={home}>
			<header>
				<div>
					<h2 id="cell-title">{spot.cell.title}</h2>
					<p>{arms.length > 1 ? `${arms[1]} against ${arms[0]}` : arms[0]}</p>
				</div>
				<div class="steps no-print">
					<Jump id="maps" title="Heat maps" at={mapOf(spot)} go={(at) => (mapPlace.value = at)} />
					<Jump id="profiles" title="Profiles" at={profileOf(spot)} go={(at) => (profilePlace.value = at)} />
					<button type="button" class="small" onClick={leave}>
						Close
					</button>
				</div>
			</header>
			<Metrics spot={spot} />
			<Curves spot={spot} width={Math.min(560, innerWidth - 40)} height={240} />
			<Maps spot={spot} />
			<SeriesOfArms spot={spot} />
			<Runs spot={spot} />
		</div>
	);
}

const mapOf = (spot: Spot) =>
	maps.value && !(maps.value instanceof Error)
		? maps.value.cells.findIndex((cell) => cell.title === spot.cell.cell)
		: -1;

const profileOf = (spot: Spot) =>
	profiles.value && !(profiles.value instanceof Error)
		? profiles.value.cells.findIndex((cell) => cell.title === spot.cell.cell)
		: -1;

/** A button that closes the drawer and scrolls to the cell in a section of the page; null if it is in none. */
function Jump(props: { id: string; title: string; at: number; go: (at: number) => void }) {
	if (props.at < 0) return null;
	const jump = () => {
		props.go(props.at);
		leave();
		setTimeout(() => document.getElementById(props.id)?.scrollIntoView());
	};
	return (
		<button type="button" class="small" onClick={jump}>
			{props.title}
		</button>
	);
}

/** All metrics of the cell, one in each row. */
function Metrics({ spot }: { spot: Spot }) {
	const all = sameCell(spot, spots.value);
	const arms = spot.cell.sides.map((side) => side.arm);
	const fact = (other: Spot, name: string) => other.cell.facts.find(([key]) => key === name)?.[1] ?? "";
	const names = [...arms, ...(arms.length > 1 ? ["change", "test"] : [])];
	const verdicts = spot.cell.facts.filter(([name]) => name === "SUSPECT" || name === "INVALID");
	return (
		<>
			{/* biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled with the keyboard */}
			<section class="table" tabIndex={0} aria-label="metrics of this cell">
				<table>
					<thead>
						<tr>
							<th scope="col">metric</th>
							{names.map((name) => (
								<th key={name} scope="col">
									{name}
								</th>
							))}
						</tr>
					</thead>
					<tbody>
						{all.map((other) => (
							<tr key={other.cell.metric}>
								<th scope="row">
									<code>{other.cell.metric}</code>
								</th>
								{names.map((name) => (
									<td key={name}>{fact(other, name)}</td>
								))}
							</tr>
						))}
					</tbody>
				</table>
			</section>
			{verdicts.map(([level, text]) => (
				<p key={level} class="cell-verdict">
					<Badge level={level as "SUSPECT" | "INVALID"} /> {text}
				</p>
			))}
		</>
	);
}

/** The heat maps of the cell's arms and their difference. */
function Maps({ spot }: { spot: Spot }) {
	const at = mapOf(spot);
	// the section of the page shows the same cell: both share time axis and colours
	useEffect(() => {
		if (at >= 0) mapPlace.value = at;
	}, [at]);
	if (!hasMaps()) return null;
	const all = maps.value;
	if (all === undefined) return <p class="waiting">Unpacking…</p>;
	if (all instanceof Error) return <p class="problem">{all.message}</p>;
	if (at < 0) return <p class="quiet">No I/O of this cell was recorded: it has no heat maps.</p>;
	return (
		<section aria-label="heat maps">
			<h3>Heat maps</h3>
			<CellMaps all={all} place={at} id="cell" />
		</section>
	);
}

/** Series of the first run of each arm. */
function SeriesOfArms({ spot }: { spot: Spot }) {
	const all = details.value;
	if (all === undefined) return <p class="waiting">Unpacking…</p>;
	if (all instanceof Error) return <p class="problem">{all.message}</p>;
	const { ids, columns } = report.value.runs;
	const variants = columns.find((column) => column.key === "variant")?.values ?? [];
	const arms = spot.cell.sides.map((side) => spot.cell.runs.find((run) => variants[run] === side.arm));
	const shown = arms.filter((run): run is number => run !== undefined && (all.runs[run]?.strips.length ?? 0) > 0);
	if (shown.length === 0) return null;
	return (
		<div class="arms">
			{shown.map((run) => {
				const detail = all.runs[run];
				return detail ? (
					<div key={run}>
						<h3>
							{String(variants[run])}, run {ids[run]}
						</h3>
						<Series all={all} detail={detail} />
					</div>
				) : null;
			})}
		</div>
	);
}

function Runs({ spot }: { spot: Spot }) {
	const { ids, levels } = report.value.runs;
	return (
		<section aria-label="runs of this cell">
			<h3>Runs</h3>
			<ul class="evidence">
				{spot.cell.runs.map((run) => (
					<li key={run}>
						<RunButton id={ids[run] ?? ""} /> {levels[run] !== "OK" && <Badge level={levels[run] ?? "OK"} />}
					</li>
				))}
			</ul>
		</section>
	);
}
