// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from "preact/hooks";
import { linearTicks, quantity } from "../../canvas/ticks";
import type { IoLayers, RelatedIo, SingleIo } from "../../generated/api";
import { visible } from "../../lib/names";
import { useAsked } from "./use-answer";

/** Layers in plain words. */
const LAYER: Record<string, string> = { syscall: "file call", block: "block I/O", nfs: "NFS operation" };

const MATCH: Record<RelatedIo["match"] | "self", string> = {
	self: "this I/O",
	thread: "same thread",
	process: "same process",
	time: "by time only",
};

export interface Row {
	io: SingleIo;
	match: keyof typeof MATCH;
	/** ns since the start of the chosen I/O. */
	start: number;
	end: number;
}

/** The rows of a time line from the top layer down: calls, the I/O itself, the I/Os below. */
export function rowsOf({ io, above, below }: IoLayers): Row[] {
	const related = (item: RelatedIo): Row => ({
		io: item.io,
		match: item.match,
		start: item.start_ns,
		end: item.end_ns,
	});
	return [...above.map(related), { io, match: "self", start: 0, end: io.latency_ns ?? 0 }, ...below.map(related)];
}

/** The time that is drawn: of all that is matched by more than time, with a margin. */
export function domainOf(rows: readonly Row[]): { from: number; until: number } {
	const tied = rows.filter((row) => row.match !== "time");
	const from = Math.min(...tied.map((row) => row.start - (row.io.queue_ns ?? 0)));
	const until = Math.max(...tied.map((row) => row.end));
	const margin = Math.max(500, 0.04 * (until - from));
	return { from: from - margin, until: until + margin };
}

/** One I/O with the call above it and the block I/Os below it, on one axis of time. */
export function IoTimeLine({ recording, id }: { recording: string; id: string }) {
	const home = useRef<HTMLElement>(null);
	const { found, stale, problem } = useAsked<IoLayers>("io-layers", { recording, id }, 0, true);
	useEffect(() => {
		if (found) home.current?.scrollIntoView?.({ block: "nearest" });
	}, [found]);
	return (
		<section ref={home} class="io-line" aria-label="One I/O through the layers" aria-busy={stale}>
			{problem && <p class="problem">{problem}</p>}
			{!found && !problem && <p class="quiet waiting">asking for the call and the I/Os below…</p>}
			{found && !stale && <TimeLine found={found} />}
		</section>
	);
}

function TimeLine({ found }: { found: IoLayers }) {
	const rows = rowsOf(found);
	const { from, until } = domainOf(rows);
	const ticks = linearTicks(from, until, 6, "ns");
	const place = (time: number) => Math.min(100, Math.max(0, (100 * (time - from)) / (until - from)));
	const byTime = rows.some((row) => row.match === "time");
	return (
		<>
			<div class="table">
				<table>
					<thead>
						<tr>
							<th scope="col">layer</th>
							<th scope="col">what</th>
							<th scope="col">match</th>
							<th scope="col" class="number">
								starts
							</th>
							<th scope="col" class="number">
								lasts
							</th>
							<td class="io-axis">
								<div>
									{ticks.map((tick) => (
										<span key={tick.value} style={{ left: `${place(tick.value)}%` }}>
											{tick.label}
										</span>
									))}
								</div>
							</td>
						</tr>
					</thead>
					<tbody>
						{rows.map((row, i) => (
							<tr key={`${row.io.id} ${i}`} class={row.match}>
								<th scope="row">{LAYER[row.io.source] ?? visible(row.io.source)}</th>
								<td class="name" title={aboutIo(row.io)}>
									{aboutIo(row.io)}
								</td>
								<td>{MATCH[row.match]}</td>
								<td class="number">{row.match === "self" ? "0" : signed(row.start)}</td>
								<td class="number">{row.io.latency_ns === null ? "–" : quantity(row.end - row.start, "ns", 5)}</td>
								<td class="io-bars">
									<Bar row={row} place={place} ticks={ticks.map((tick) => place(tick.value))} />
								</td>
							</tr>
						))}
					</tbody>
				</table>
			</div>
			<p class="quiet">{notesOf(found, byTime).join(" ")}</p>
		</>
	);
}

/** A bar from start to end, cut at the ends of the axis, with its time in the queue before it. */
function Bar({ row, place, ticks }: { row: Row; place: (time: number) => number; ticks: readonly number[] }) {
	const { start, end, match, io } = row;
	const [left, right] = [place(start), place(end)];
	const queued = io.queue_ns ? place(start - io.queue_ns) : left;
	return (
		<svg viewBox="0 0 100 14" preserveAspectRatio="none" aria-hidden="true">
			{ticks.map((tick) => (
				<line key={tick} x1={tick} x2={tick} y1="0" y2="14" class="tick" />
			))}
			{queued < left && <rect x={queued} width={left - queued} y="5" height="4" class="queue" />}
			<rect x={left} width={Math.max(0.25, right - left)} y="2" height="10" class={match} />
		</svg>
	);
}

const signed = (ns: number) => `${ns < 0 ? "−" : "+"}${quantity(Math.abs(ns), "ns", 5)}`;

/** A process with its id. */
export function processWords({ process, pid, thread }: SingleIo): string {
	const ids = [pid, thread !== pid && thread].filter((id) => id !== null && id !== false).join("/");
	return [process !== null && visible(process), ids].filter(Boolean).join(" ") || "–";
}

/** An I/O in one line: its call or operation, size and place, its device or file, and its process. */
export function aboutIo(io: SingleIo): string {
	const what = io.source === "syscall" ? (io.flags ?? io.op) : io.op;
	const words = [
		visible(what),
		io.size_bytes !== null && quantity(io.size_bytes, "B", 5),
		io.offset_bytes !== null && `at ${quantity(io.offset_bytes, "B", 6)}`,
		io.device && `on ${visible(io.device)}`,
		io.file && `of ${visible(io.file)}`,
		(io.process !== null || io.pid !== null) && `by ${processWords(io)}`,
	];
	return words.filter(Boolean).join(" ");
}

/** What the time line lacks, in sentences. */
function notesOf(found: IoLayers, byTime: boolean): string[] {
	const { above, below, above_left, below_left, elsewhere, layers, io } = found;
	const place = layers.indexOf(io.source);
	const upper = layers.slice(0, Math.max(0, place)).map((name) => LAYER[name] ?? name);
	const lower = layers.slice(place + 1).map((name) => LAYER[name] ?? name);
	return [
		above.length === 0 && upper.length > 0 && `No recorded ${upper.join(" or ")} was under way when it was issued.`,
		below.length === 0 && lower.length > 0 && `No recorded ${lower.join(" or ")} was under way during it.`,
		place >= 0 && layers.length === 1 && "The recording has no other layer; record block and syscall to have both.",
		byTime && "Dashed: matched by time only; it was under way at the same time.",
		elsewhere > 0 && `${elsewhere} I/Os of other calls at the same time are left out.`,
		above_left > 0 && `${above_left} more calls are not listed.`,
		below_left > 0 && `${below_left} more I/Os are not listed.`,
		...found.notes,
	].filter((words): words is string => Boolean(words));
}
