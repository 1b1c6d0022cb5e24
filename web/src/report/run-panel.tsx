// SPDX-License-Identifier: Apache-2.0
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { seriesSpec } from "../canvas/series";
import type { Details, RunDetail } from "../generated/report";
import { Modal } from "../lib/modal";
import { printing, theme } from "../lib/theme";
import { Drawing } from "./drawing";
import { Badge, Verbatim } from "./parts";
import { cellText } from "./run-table";
import { details, go, loadDetails, opened, report } from "./state";

/** One run, in a drawer over the page. Escape, the button and a click outside close it. */
export function Panel() {
	const run = opened.value;
	if (run < 0) return null;
	return (
		<Modal looks="panel" title="panel-title" leave={leave}>
			<RunView run={run} />
		</Modal>
	);
}

const leave = () => go({ run: "" });

function RunView({ run }: { run: number }) {
	const home = useRef<HTMLDivElement>(null);
	useEffect(loadDetails, []);
	useLayoutEffect(() => home.current?.closest("dialog")?.scrollTo(0, 0), [run]);
	const table = report.value.runs;
	const found = details.value;
	const neighbour = (step: number) => table.ids[run + step];
	const plain = table.columns.filter((column) => !column.key.includes("."));
	return (
		<div class="inside" ref={home}>
			<header>
				<div>
					<h2 id="panel-title">
						Run {table.ids[run]} <Badge level={table.levels[run] ?? "OK"} />
					</h2>
					<p>{plain.map((column) => `${column.title} ${cellText(column, run)}`).join(" · ")}</p>
				</div>
				<div class="steps no-print">
					<Step to={neighbour(-1)} sign="‹" label="Run before" />
					<Step to={neighbour(1)} sign="›" label="Run after" />
					<button type="button" class="small" onClick={leave}>
						Close
					</button>
				</div>
			</header>
			{found === undefined && <p class="waiting">Unpacking…</p>}
			{found instanceof Error && <p class="problem">{found.message}</p>}
			{found && !(found instanceof Error) && <Detail key={run} all={found} run={run} />}
		</div>
	);
}

function Step({ to, sign, label }: { to: string | undefined; sign: string; label: string }) {
	return (
		<button
			type="button"
			class="small"
			disabled={!to}
			aria-label={label}
			title={label}
			onClick={() => to && go({ run: to }, true)}
		>
			{sign}
		</button>
	);
}

function Detail({ all, run }: { all: Details; run: number }) {
	const detail = all.runs[run];
	if (!detail) return <p class="problem">Nothing is recorded of this run.</p>;
	return (
		<>
			<Reasons detail={detail} />
			<Series all={all} detail={detail} />
			<Observations all={all} detail={detail} />
			<Facts detail={detail} />
			{detail.command && <Verbatim title="command" text={detail.command} />}
			{detail.job && <Verbatim title="exact job" text={detail.job} />}
			<Evidence detail={detail} />
		</>
	);
}

function Reasons({ detail }: { detail: RunDetail }) {
	if (detail.reasons.length === 0) return <p>Every gate was content.</p>;
	return (
		<ul class="reasons">
			{detail.reasons.map((reason) => (
				<li key={reason.code + reason.text}>
					<Badge level={reason.level} /> <code>{reason.code}</code> {reason.text}
				</li>
			))}
		</ul>
	);
}

/** A run's per-second series, drawn on request. */
export function Series({ all, detail }: { all: Details; detail: RunDetail }) {
	const [shown, setShown] = useState(false);
	const dark = theme.value === "dark" && !printing.value;
	const spec = useMemo(() => (shown ? seriesSpec(detail, all.times, dark) : undefined), [shown, detail, all, dark]);
	if (detail.strips.length === 0) return <p class="quiet">No per-second series was recorded.</p>;
	const seconds = Math.max(...detail.strips.flatMap((strip) => strip.lines.map((line) => line.values.length)));
	return (
		<section aria-label="per-second series">
			<h3>Second by second</h3>
			<button type="button" class="no-print" aria-expanded={shown} onClick={() => setShown(!shown)}>
				{shown ? "Hide" : "Show"} {detail.strips.length} series over {seconds} s
			</button>
			{spec && <Drawing spec={spec} label="Per-second series of the run" />}
			{shown && all.left_out && <p class="quiet">{all.left_out}</p>}
		</section>
	);
}

function Observations({ all, detail }: { all: Details; detail: RunDetail }) {
	const text = (place: number) => all.texts[place] ?? "";
	return (
		<section aria-label="observations">
			<h3>Observations</h3>
			<div class="table">
				<table class="observations">
					<thead>
						<tr>
							<th scope="col">metric</th>
							<th scope="col" class="value">
								value
							</th>
							<th scope="col">file</th>
							<th scope="col">field</th>
							<th scope="col" class="value">
								as the file has it
							</th>
						</tr>
					</thead>
					<tbody>
						{detail.observations.map(([metric, value, file, field, original]) => (
							<tr key={metric}>
								<th scope="row">{text(metric)}</th>
								<td class="value">{text(value)}</td>
								<td class="path">{text(file).split("/").at(-1)}</td>
								<td class="path">{text(field)}</td>
								<td class="value">{text(original)}</td>
							</tr>
						))}
					</tbody>
				</table>
			</div>
		</section>
	);
}

function Facts({ detail }: { detail: RunDetail }) {
	return (
		<section aria-label="plan">
			<h3>Plan</h3>
			<dl>
				{detail.facts.map(([name, value]) => (
					<div key={name}>
						<dt>{name}</dt>
						<dd>{value}</dd>
					</div>
				))}
			</dl>
			{detail.assumptions.length > 0 && (
				<>
					<h3>Assumed</h3>
					<ul>
						{detail.assumptions.map((text) => (
							<li key={text}>{text}</li>
						))}
					</ul>
				</>
			)}
		</section>
	);
}

function Evidence({ detail }: { detail: RunDetail }) {
	if (detail.links.length === 0) return null;
	return (
		<section aria-label="evidence">
			<h3>Evidence</h3>
			<ul class="evidence">
				{detail.links.map((link) => (
					<li key={link.text}>{link.href ? <a href={link.href}>{link.text}</a> : <code>{link.text}</code>}</li>
				))}
			</ul>
		</section>
	);
}
