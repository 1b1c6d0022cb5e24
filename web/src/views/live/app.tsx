import { useState } from "preact/hooks";
import type { Kind } from "../../canvas/scale";
import { quantity } from "../../canvas/ticks";
import { kind, span, wholeSpan } from "../../model/heatmap";
import { theme, toggleTheme } from "../../model/theme";
import { amount, Graph, rate } from "./graph";
import { LiveMap } from "./map";
import {
	add,
	catalogue,
	choose,
	chosen,
	close,
	facts,
	type Panel,
	panels,
	paused,
	recordings,
	refused,
	seconds,
	tick,
	unreachable,
	WINDOWS,
} from "./state";

/** The page: what is served, what can be asked, and what was. */
export function LiveApp() {
	return (
		<div class="live maps">
			<Head />
			<nav aria-label="Statistics">
				<Catalogue />
			</nav>
			<main>
				<Typed />
				<div class="panels">
					{panels.value.map((panel) => (
						<PanelView key={panel.name} panel={panel} />
					))}
				</div>
				{panels.value.length === 0 && <p class="quiet">Type a statistic, or take one from the list.</p>}
			</main>
		</div>
	);
}

function Head() {
	const live = facts()?.live ?? false;
	return (
		<header class="controls">
			<h1>iolab</h1>
			<label>
				recording{" "}
				<select id="recording" value={chosen.value} onChange={(event) => choose(event.currentTarget.value)}>
					{recordings.value.map((each) => (
						<option key={each.name} value={each.name}>
							{each.name}
							{each.live ? " (live)" : ""}
						</option>
					))}
				</select>
			</label>
			{live && (
				<>
					<label>
						last{" "}
						<select
							id="window"
							value={String(seconds.value)}
							onChange={(event) => (seconds.value = Number(event.currentTarget.value))}
						>
							{WINDOWS.map((each) => (
								<option key={each} value={String(each)}>
									{quantity(each * 1e9, "ns")}
								</option>
							))}
						</select>
					</label>
					<button type="button" id="pause" onClick={() => (paused.value = !paused.value)}>
						{paused.value ? "Go on" : "Pause"}
					</button>
				</>
			)}
			<label>
				colour by{" "}
				<select id="color" value={kind.value} onChange={(event) => (kind.value = event.currentTarget.value as Kind)}>
					<option>rank</option>
					<option>log</option>
					<option>linear</option>
				</select>
			</label>
			<button type="button" id="whole" onClick={() => (span.value = wholeSpan.value)}>
				All time
			</button>
			<button type="button" id="theme" onClick={toggleTheme}>
				{theme.value === "dark" ? "Light" : "Dark"}
			</button>
			<span class="quiet" id="status" role="status">
				{status()}
			</span>
		</header>
	);
}

function status(): string {
	const recording = facts();
	if (unreachable.value && recording?.live) return "the service is not reached; trying again";
	if (!recording) return "";
	const count = (counts: Record<string, number>) => Object.values(counts).reduce((sum, each) => sum + each, 0);
	const now = tick.value;
	const events = count((now ?? recording).events);
	const words = [recording.host, `${thousands(events)} I/Os`];
	if (now) words.push(`${thousands(count(now.lost))} lost`, now.state);
	if (now) words.push(...Object.entries(now.suspended).map(([source, why]) => `${source} is suspended: ${why}`));
	if (recording.problem) words.push(recording.problem);
	return words.filter(Boolean).join(" · ");
}

const thousands = (count: number) => count.toLocaleString("en").replaceAll(",", " ");

function Typed() {
	const [text, setText] = useState("");
	return (
		<form
			class="typed"
			onSubmit={async (event) => {
				event.preventDefault();
				if (text.trim() && (await add(text.trim()))) setText("");
			}}
		>
			<input
				id="statistic"
				value={text}
				onInput={(event) => setText(event.currentTarget.value)}
				placeholder="io.ops[op=write][latency]"
				aria-label="Statistic"
				spellcheck={false}
				autocomplete="off"
				maxLength={4096}
			/>
			<button type="submit">Show</button>
			{refused.value && <p class="problem">{refused.value}</p>}
		</form>
	);
}

function Catalogue() {
	return (
		<ul>
			{catalogue.value.map((each) => (
				<li key={each.name} class={each.available ? "" : "missing"} title={each.available ? each.about : each.why_not}>
					<button type="button" disabled={!each.available} onClick={() => add(each.name)}>
						{each.name}
					</button>
					{each.available && (
						<span class="by">
							{each.breakdowns.map(({ field, kind: drawn }) => (
								<button key={field} type="button" class={drawn} onClick={() => add(`${each.name}[${field}]`)}>
									{field}
								</button>
							))}
						</span>
					)}
				</li>
			))}
		</ul>
	);
}

function PanelView({ panel }: { panel: Panel }) {
	const answer = panel.answer.value;
	return (
		<section aria-label={panel.name} data-statistic={panel.name}>
			<div class="controls">
				<h2>{panel.name}</h2>
				{answer && answer.kind !== "map" && <Totals answer={answer} />}
				<button type="button" class="small close" aria-label={`Close ${panel.name}`} onClick={() => close(panel)}>
					×
				</button>
			</div>
			{panel.problem.value && <p class="problem">{panel.problem.value}</p>}
			{answer?.kind === "map" && panel.choice && <LiveMap answer={answer} choice={panel.choice} />}
			{answer?.kind === "map" && !answer.group && <p class="quiet">No I/O here has such a value.</p>}
			{answer && answer.kind !== "map" && <Graph answer={answer} />}
			{answer?.notes.map((note) => (
				<p key={note} class="quiet">
					{note}
				</p>
			))}
		</section>
	);
}

function Totals({ answer }: { answer: { total: number; mean: number | null; unit: string } }) {
	return (
		<span class="quiet">
			{[amount(answer.total, answer.unit), answer.mean !== null && `${rate(answer.mean, answer.unit)} on average`]
				.filter(Boolean)
				.join(", ")}
		</span>
	);
}
