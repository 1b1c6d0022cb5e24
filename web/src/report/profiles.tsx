// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ProfileCell, ProfileChange, ProfileInfo, Profiles } from "../generated/report";
import { visible } from "../lib/names";
import { Flame, type Look } from "./flame";
import { CellChoice, Unpacked } from "./lazy-section";
import {
	busyShare,
	frameInCells,
	loadProfiles,
	matching,
	meanShares,
	mostWithin,
	nameOf,
	points,
	profilePlace,
	profiles,
	STEPS,
	shareWithin,
	stepOf,
	type View,
	viewOf,
} from "./profile-data";

/** Flame graphs of the profiles: a cell at a time, its variants on one scale of width, and what differs between them. */
export const ProfileGraphs = () => (
	<Unpacked
		id="profiles"
		title="Profiles"
		found={profiles.value}
		load={loadProfiles}
		show={(all) => <Chosen all={all} />}
	/>
);

function Chosen({ all }: { all: Profiles }) {
	const place = profilePlace.value;
	const [look, setLook] = useState<Look>("flame");
	const [words, setWords] = useState("");
	const [view, setView] = useState<View>("all");
	const whole = all.cells[place];
	const cell = useMemo(() => whole && viewOf(whole, view), [whole, view]);
	return (
		<>
			<p class="quiet">{all.method.join(" ")}</p>
			{all.notes.map((note) => (
				<p key={note} class="quiet">
					{note}
				</p>
			))}
			{cell && (
				<>
					<div class="chooser no-print">
						<CellChoice
							id="profile-cell"
							cells={all.cells}
							place={place}
							onPlace={(at) => {
								profilePlace.value = at;
							}}
						/>
						<label>
							graph{" "}
							<select id="profile-look" value={look} onChange={(event) => setLook(event.currentTarget.value as Look)}>
								<option value="flame">flame: callers below</option>
								<option value="icicle">icicle: callers above</option>
							</select>
						</label>
						<label>
							functions{" "}
							<select id="profile-view" value={view} onChange={(event) => setView(event.currentTarget.value as View)}>
								<option value="all">all</option>
								<option value="kernel">of the kernel</option>
								<option value="user">of user programs</option>
							</select>
						</label>
						<label>
							find{" "}
							<input
								id="profile-find"
								type="search"
								placeholder="function name"
								value={words}
								onInput={(event) => setWords(event.currentTarget.value)}
							/>
						</label>
					</div>
					<CellGraphs key={`${place} ${view}`} all={all} cell={cell} look={look} words={words} />
				</>
			)}
		</>
	);
}

function CellGraphs({ all, cell, look, words }: { all: Profiles; cell: ProfileCell; look: Look; words: string }) {
	const [zoom, setZoom] = useState(-1);
	const home = useRef<HTMLDivElement>(null);
	const before = useRef(zoom);
	useLayoutEffect(() => {
		// the focused element may be removed: keys continue in the first graph
		if (before.current !== zoom && document.activeElement === document.body)
			home.current?.querySelector<HTMLElement>(".slice")?.focus({ preventScroll: true });
		before.current = zoom;
	}, [zoom]);
	const found = matching(cell.parts, words);
	const shares = cell.profiles.map((profile) => (zoom < 0 ? 1 : (profile.shares[zoom] ?? 0)));
	const shown = { cell, look, found, zoom, onZoom: setZoom, widest: Math.max(...shares) };
	return (
		<div class="profiles" ref={home}>
			{cell.title && <h3>{cell.title}</h3>}
			<p class="zoomed">
				{zoom < 0 ? (
					<span class="quiet">
						A click shows a part alone in every graph; arrows walk, Enter or z zooms, Esc shows all.
					</span>
				) : (
					<>
						<button type="button" class="small" onClick={() => setZoom(-1)}>
							Show all
						</button>{" "}
						Only <strong>{nameOf(cell.parts, zoom)}</strong>, in all graphs on one scale of width.
					</>
				)}
			</p>
			{zoom >= 0 && <FrameTable all={all} cell={cell} part={zoom} />}
			<ul class="legend" aria-label="Colours of profiles">
				<Swatch kind="process">process</Swatch>
				<Swatch kind="user">user program</Swatch>
				<Swatch kind="kernel">kernel</Swatch>
				{words.trim() && <Swatch kind="found">found</Swatch>}
			</ul>
			{cell.profiles.map((profile) => (
				<One key={profile.run} {...shown} profile={profile} words={words} />
			))}
			{cell.changes.map((change) => (
				<Difference key={`${change.before} ${change.after}`} {...shown} change={change} />
			))}
		</div>
	);
}

interface Shown {
	cell: ProfileCell;
	look: Look;
	found: ReadonlySet<number>;
	zoom: number;
	onZoom: (part: number) => void;
	widest: number;
}

function One({ profile, words, ...shown }: Shown & { profile: ProfileInfo; words: string }) {
	const { cell, found } = shown;
	const { parts } = cell;
	const said = (part: number) =>
		part < 0
			? `all: ${profile.busy} samples`
			: `${nameOf(parts, part)}${who(cell, part)}: ${profile.samples[part]} samples, ${busyShare(profile.shares[part] ?? 0)}`;
	return (
		<figure class="profile">
			<figcaption>
				<strong>
					{profile.variant}
					{profile.baseline && <small> baseline</small>}
				</strong>{" "}
				{profile.sampled}; {profile.spent}. <span class="quiet">Run {profile.run}.</span>
				{words.trim() && (
					<span class="match">
						{" "}
						“{words.trim()}”: {busyShare(shareWithin(parts, found, profile.shares))}.
					</span>
				)}
				{profile.remarks.map((remark) => (
					<span key={remark} class="remark">
						{" "}
						{remark}.
					</span>
				))}
			</figcaption>
			<Flame
				{...shown}
				label={`Flame graph of ${profile.variant}`}
				widths={profile.shares}
				say={said}
				tone={(part) =>
					part < 0 || (parts.parent[part] ?? -1) < 0 ? "process" : parts.kernel[part] ? "kernel" : "user"
				}
			/>
		</figure>
	);
}

function Difference({ change, ...shown }: Shown & { change: ProfileChange }) {
	const { cell } = shown;
	const [before, after] = [cell.profiles[change.before], cell.profiles[change.after]];
	const most = mostWithin(cell.parts, shown.zoom, change.changes);
	if (!before || !after) return null;
	const said = (part: number) =>
		part < 0
			? "all"
			: `${nameOf(cell.parts, part)}${who(cell, part)}: ${busyShare(before.shares[part] ?? 0)} became ${busyShare(after.shares[part] ?? 0)}, ${points(change.changes[part] ?? 0)}`;
	return (
		<figure class="profile">
			<figcaption>
				<strong>
					{after.variant} against {before.variant}
				</strong>{" "}
				Colour says how much more or less of the busy time a part takes; widths are the mean of both shares.
				<Scale most={most} variant={after.variant} />
			</figcaption>
			<Flame
				{...shown}
				label={`Difference of ${after.variant} from ${before.variant}`}
				widths={meanShares(cell, change)}
				say={said}
				tone={(part) => `step${part < 0 ? 0 : stepOf(change.changes[part] ?? 0, most)}`}
			/>
			{change.functions.length > 0 && <Functions change={change} before={before} after={after} />}
		</figure>
	);
}

/** The share of one function in each profile of all cells. A cell's name leads to its graphs. */
function FrameTable({ all, cell, part }: { all: Profiles; cell: ProfileCell; part: number }) {
	const rows = useMemo(() => frameInCells(all, cell, part), [all, cell, part]);
	const variants = [...new Set(rows.flatMap(({ shares }) => shares.map(([variant]) => variant)))];
	return (
		<div class="table">
			<table class="functions" id="profile-frame">
				<caption>
					{nameOf(cell.parts, part)}
					{who(cell, part)} in all cells: share of the busy samples, wherever it was called from
				</caption>
				<thead>
					<tr>
						<th scope="col">cell</th>
						{variants.map((variant) => (
							<th scope="col" key={variant}>
								{variant}
							</th>
						))}
					</tr>
				</thead>
				<tbody>
					{rows.map(({ place, title, shares }) => (
						<tr key={title}>
							<th scope="row">
								<button
									type="button"
									class="small"
									onClick={() => {
										profilePlace.value = place;
									}}
								>
									{title || "the only cell"}
								</button>
							</th>
							{variants.map((variant) => {
								const listed = shares.filter(([name]) => name === variant).map(([, share]) => busyShare(share));
								return <td key={variant}>{listed.join(", ") || "—"}</td>;
							})}
						</tr>
					))}
				</tbody>
			</table>
		</div>
	);
}

/** The colours of a difference with what they mean. */
function Scale({ most, variant }: { most: number; variant: string }) {
	const steps = Array.from({ length: 2 * STEPS + 1 }, (_, i) => i - STEPS);
	return (
		<span class="scale">
			less in {variant} ({points(-most)})
			<span class="steps" aria-hidden="true">
				{steps.map((step) => (
					<span key={step} class="step" data-tone={`step${step}`} />
				))}
			</span>
			more ({points(most)})
		</span>
	);
}

function Functions({ change, before, after }: { change: ProfileChange; before: ProfileInfo; after: ProfileInfo }) {
	return (
		<div class="table">
			<table class="functions">
				<caption>Functions with the largest difference of the own share, wherever they were called from</caption>
				<thead>
					<tr>
						<th scope="col">function</th>
						<th scope="col">in</th>
						<th scope="col">{before.variant}</th>
						<th scope="col">{after.variant}</th>
						<th scope="col">difference</th>
					</tr>
				</thead>
				<tbody>
					{change.functions.map((each) => (
						<tr key={`${each.name} ${each.kernel}`}>
							<th scope="row">{visible(each.name)}</th>
							<td>{each.kernel ? "kernel" : "user"}</td>
							<td>{each.before}</td>
							<td>{each.after}</td>
							<td class={each.more ? "more" : "less"}>{each.change}</td>
						</tr>
					))}
				</tbody>
			</table>
		</div>
	);
}

function Swatch({ kind, children }: { kind: string; children: string }) {
	return (
		<li>
			<span class="step" data-tone={kind} aria-hidden="true" /> {children}
		</li>
	);
}

function who(cell: ProfileCell, part: number): string {
	if ((cell.parts.parent[part] ?? -1) < 0) return "";
	return cell.parts.kernel[part] ? " (kernel)" : " (user)";
}
