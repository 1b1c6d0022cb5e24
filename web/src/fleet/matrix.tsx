// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { steps } from "../canvas/bitmap";
import { dayOf, EPOCH, timeTicks } from "../canvas/clock";
import { quantity } from "../canvas/ticks";
import type { FleetAnswer, FleetHost } from "../generated/api";
import { visible } from "../lib/names";
import { palettes, theme } from "../lib/theme";
import { countWords } from "../lib/words";
import { zoned, zoneWords } from "../lib/zone";
import { colourRange, largest, levelIn, MEASURES, valueAt } from "./measures";
import { addressOf, HOST, hosts, labelsOf, showHosts } from "./state";

/** The cell that keys and pointer are at. */
export const cell = signal<{ row: number; column: number } | null>(null);

const LEGEND_TICKS = [0, 0.5, 1];

const moment = (ns: number): string =>
	ns < EPOCH
		? quantity(ns, "ns")
		: zoned(ns / 1e6)
				.toISOString()
				.slice(0, 19)
				.replace("T", " ");

const valueWords = (value: number | null, { measure }: FleetAnswer): string =>
	value === null ? "no value" : MEASURES[measure].words(value);

/** Hosts as rows of colours over time. Arrow keys move, Enter opens the worksheet. */
export function Matrix({ shown }: { shown: FleetAnswer }) {
	const rows = hosts.value;
	const range = colourRange(shown.measure, shown.hosts);
	const palette = steps(palettes.value[theme.value].palette);
	const length = shown.columns * shown.interval_ns;
	const isNarrow = window.innerWidth < 600;
	// a mark that begins later has no room for its words
	const ticks = timeTicks(shown.t0_ns, 0, length, isNarrow ? 4 : 9).filter(
		({ value }) => value < (isNarrow ? 0.8 : 0.95) * length,
	);
	const title = MEASURES[shown.measure].title;
	const place = cell.value;
	const row = place && rows[place.row];
	const isSum = shown.by !== HOST;

	const open = (isNew: boolean) => {
		const at = cell.peek();
		const host = at && rows[at.row];
		if (host && isSum) {
			cell.value = null;
			showHosts(host, shown.by);
			return;
		}
		const address = at && host ? addressOf(host, at.column, shown) : "";
		if (!address) return;
		if (isNew) window.open(address, "_blank", "noopener");
		else location.assign(address);
	};
	const onKeyDown = (event: KeyboardEvent) => {
		if ((event.target as HTMLElement).tagName === "A") return;
		const at = cell.peek() ?? { row: 0, column: -1 };
		const moves: Record<string, [number, number]> = {
			ArrowLeft: [0, -1],
			ArrowRight: [0, 1],
			ArrowUp: [-1, 0],
			ArrowDown: [1, 0],
			PageUp: [-10, 0],
			PageDown: [10, 0],
			Home: [0, -shown.columns],
			End: [0, shown.columns],
		};
		const move = moves[event.key];
		if (move) {
			cell.value = {
				row: clamp(at.row + move[0], rows.length),
				column: clamp(at.column + move[1], shown.columns),
			};
			document.getElementById(`row-${cell.value.row}`)?.scrollIntoView({ block: "nearest" });
		} else if (event.key === "Enter" && cell.peek()) open(event.ctrlKey || event.metaKey);
		else if (event.key === "Escape") cell.value = null;
		else return;
		event.preventDefault();
	};

	return (
		<>
			{range && <Legend shown={shown} range={range} palette={palette} />}
			<p class="at" role="status">
				{row && place
					? `${visible(row.host)}, ${moment(shown.t0_ns + place.column * shown.interval_ns)}: ${valueWords(row.values[place.column] ?? null, shown)}${isSum || addressOf(row, place.column, shown) ? "" : " (no recording)"}`
					: `Arrow keys or the pointer choose a cell. Enter or a click ${isSum ? "shows the hosts of that row" : "opens the worksheet of the host at that time"}.`}
			</p>
			{/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keys move through the cells of the table */}
			<section class="matrix" aria-label={`${title} of hosts over time`} tabIndex={0} onKeyDown={onKeyDown}>
				<table style={{ "--row": rowHeight(rows.length) }}>
					<thead>
						<tr>
							<th scope="col">{isSum ? visible(shown.by) : "Host"}</th>
							<th scope="col" class="time">
								<span class="title">
									Time{shown.clock === "realtime" && `, ${dayOf(shown.t0_ns)}, ${zoneWords(shown.t0_ns / 1e6)}`}; a
									column is {quantity(shown.interval_ns, "ns")}
								</span>
								<span class="ticks" aria-hidden="true">
									{ticks.map(({ value, label }) => (
										<span key={value} style={{ left: `${(100 * value) / length}%` }}>
											{label}
										</span>
									))}
								</span>
							</th>
							<th scope="col" class="most">
								Largest
							</th>
						</tr>
					</thead>
					<tbody>
						{rows.map((each, number) => (
							<Row
								key={each.host}
								host={each}
								number={number}
								shown={shown}
								range={range}
								palette={palette}
								column={place?.row === number ? place.column : null}
								open={open}
							/>
						))}
					</tbody>
				</table>
				{rows.length === 0 && <p>No host has this in its name or labels.</p>}
			</section>
		</>
	);
}

/** A few hosts fill the screen, many have narrow rows. */
const rowHeight = (count: number): string => `clamp(1.5rem, calc((100vh - 20rem) / ${Math.max(1, count)}), 4rem)`;

const clamp = (value: number, count: number): number => Math.max(0, Math.min(count - 1, value));

interface RowParts {
	host: FleetHost;
	number: number;
	shown: FleetAnswer;
	range: [number, number] | null;
	palette: readonly string[];
	column: number | null;
	open: (isNew: boolean) => void;
}

function Row({ host, number, shown, range, palette, column, open }: RowParts) {
	const canvas = useRef<HTMLCanvasElement>(null);
	useEffect(() => {
		const context = canvas.current?.getContext("2d");
		if (!context || !range) return;
		const { background } = palettes.value[theme.value];
		context.clearRect(0, 0, shown.columns, 1);
		for (const [place, value] of host.values.entries()) {
			if (value === null) continue;
			const level = levelIn(shown.measure, range, value);
			context.fillStyle =
				level === null ? background : (palette[Math.round(level * (palette.length - 1))] ?? background);
			context.fillRect(place, 0, 1, 1);
		}
	}, [host, shown, range, palette]);
	const point = (event: PointerEvent | MouseEvent) => {
		const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
		const at = Math.floor((shown.columns * (event.clientX - box.left)) / box.width);
		cell.value = { row: number, column: clamp(at, shown.columns) };
	};
	const most = largest(host.values);
	const last = host.recordings.at(-1);
	const labels = labelsOf(host);
	const words = host.problem || (most === null ? "no value" : `largest ${MEASURES[shown.measure].words(most)}`);
	return (
		<tr id={`row-${number}`}>
			<th scope="row" title={visible([host.host, ...labels].join(", "))}>
				{last ? (
					<a href={`/worksheet#${new URLSearchParams({ recording: last.name })}`}>{visible(host.host)}</a>
				) : (
					<button type="button" class="link" onClick={() => showHosts(host, shown.by)}>
						{visible(host.host)}
					</button>
				)}
				{shown.by !== HOST && <span class="labels">{countWords(host.hosts, "host")}</span>}
				{labels.length > 0 && <span class="labels">{visible(Object.values(host.labels).join(" "))}</span>}
			</th>
			<td class="cells">
				<canvas
					ref={canvas}
					width={shown.columns}
					height={1}
					role="img"
					aria-label={`${visible(host.host)}: ${words}`}
					onPointerMove={point}
					onClick={(event) => {
						point(event);
						open(event.ctrlKey || event.metaKey);
					}}
				/>
				{column !== null && (
					<span
						class="cursor"
						style={{ left: `${(100 * column) / shown.columns}%`, width: `${100 / shown.columns}%` }}
					/>
				)}
				{host.problem && <span class="why">{host.problem}</span>}
			</td>
			<td class="most">{most === null ? "–" : MEASURES[shown.measure].words(most)}</td>
		</tr>
	);
}

function Legend({
	shown,
	range,
	palette,
}: {
	shown: FleetAnswer;
	range: [number, number];
	palette: readonly string[];
}) {
	const facts = MEASURES[shown.measure];
	const stops = palette.filter((_, place) => place % 15 === 0).join(", ");
	return (
		<figure class="legend">
			<figcaption>
				{facts.title}
				{facts.isLog && " (logarithmic)"}
			</figcaption>
			<span class="scale">
				<span class="bar" style={{ background: `linear-gradient(to right, ${stops})` }} />
				<span class="ends">
					{LEGEND_TICKS.map((level) => (
						<span key={level}>{facts.words(valueAt(shown.measure, range, level))}</span>
					))}
				</span>
			</span>
			{shown.measure === "losses" && (
				<span class="key">
					<span class="swatch" />
					nothing lost
				</span>
			)}
			<span class="key">
				<span class="swatch none" />
				{shown.measure === "p99" ? "no I/O, or nothing recorded" : "nothing recorded"}
			</span>
		</figure>
	);
}
