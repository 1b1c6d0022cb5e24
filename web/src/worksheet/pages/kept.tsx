// SPDX-License-Identifier: Apache-2.0

import { useEffect, useRef, useState } from "preact/hooks";
import { ask, tell } from "../../api/client";
import { add, sheet } from "../../api/worksheet";
import { quantity } from "../../canvas/ticks";
import type { KeepPrune, Kept, KeptFacts } from "../../generated/api";
import { besides, messageOf } from "../../lib/errors";
import { visible } from "../../lib/names";
import { zoneWords } from "../../lib/zone";
import { type Limits, LimitsForm, stays, TIERS } from "../dialogs/kept-limits";
import { view } from "../session";
import { lengthWords, momentWords } from "../times";
import { Head, nextOrder, type Order, Sure } from "./parts";

const EVERY = 2000;
const DAY = 86_400e9;

/** What is to be dropped. */
type Older = Omit<KeepPrune, "recording" | "statistic">;

/** Columns by which they are put in order. */
const SORTED: Record<string, (found: KeptFacts) => number> = {
	since: ({ since_ns }) => since_ns ?? 0,
	"on disk": ({ bytes }) => bytes,
	CPU: ({ cpu_ns }) => cpu_ns,
};

/** Kept statistics in an order. */
export function ordered(kept: readonly KeptFacts[], order: Order): readonly KeptFacts[] {
	const value = SORTED[order?.by ?? ""];
	if (!order || !value) return kept;
	return kept.toSorted((one, other) => (order.down ? value(other) - value(one) : value(one) - value(other)));
}

/** Statistics that outlive the events: since when, size, cost; they can be paused, continued, pruned, dropped and added. */
export function KeptPage() {
	const { recording } = sheet.value;
	const [answered, setAnswered] = useState<Kept | null>(null);
	const found = answered?.recording === recording ? answered : null;
	const [problem, setProblem] = useState("");
	const [refusal, setRefusal] = useState("");
	const [order, setOrder] = useState<Order>(null);
	const changes = useRef(0);
	const attempt = async (act: () => Promise<Kept>, say: (words: string) => void, late = () => false) => {
		// what comes of a recording that is shown no more says nothing about this one
		const shown = () => sheet.peek().recording === recording;
		try {
			const answer = await act();
			if (shown() && !late()) setAnswered(answer);
			if (shown()) say("");
			return true;
		} catch (error) {
			if (shown()) say(messageOf(error));
			return false;
		}
	};
	const look = () => {
		const before = changes.current;
		// data read before a change is no longer valid
		return attempt(
			() => ask<Kept>("kept", { recording }),
			setProblem,
			() => changes.current !== before,
		);
	};
	const change = (path: string, words: object) =>
		tell<Kept>("POST", path, { recording, ...words }).finally(() => {
			changes.current++;
		});
	useEffect(() => {
		setProblem("");
		setRefusal("");
		void look();
		const timer = setInterval(look, EVERY);
		return () => clearInterval(timer);
	}, [recording]);
	const home = useRef<HTMLDivElement>(null);
	const act = async (action: string, statistic: string, more: object = {}) => {
		const rows = [...(home.current?.querySelectorAll<HTMLElement>("[data-kept]") ?? [])];
		const place = rows.findIndex((row) => row.dataset.kept === statistic);
		const done = await attempt(() => change(`kept/${action}`, { statistic, ...more }), setRefusal);
		// the focused element is removed with its row: the next row gets the focus
		if (done && action === "drop")
			(
				(rows[place + 1] ?? rows[place - 1])?.querySelector<HTMLElement>(".drop") ??
				home.current?.querySelector("input")
			)?.focus();
		return done;
	};
	const limit = (wanted: Limits) =>
		attempt(async () => {
			// size and share are set together: what is not changed is what holds by now
			const now = await ask<Kept>("kept", { recording });
			const { bytes = null, cpu_share = null } = now.limits ?? {};
			return change("kept/limits", { bytes, cpu_share, retention: {}, ...wanted });
		}, setRefusal);
	const { kept, limits } = found ?? { kept: null, limits: null };
	return (
		<div class="page" ref={home}>
			<h2>Kept statistics of {visible(recording)}</h2>
			<p class="quiet">
				Events are deleted beyond the recording's limits. These statistics are kept longer
				{limits && `: ${TIERS.map(({ tier, name }) => `by the ${name} for ${stays(limits, tier)}`).join(", ")}`}.
			</p>
			{besides([problem, refusal]).map((words) => (
				<p key={words} class="problem" role="status">
					{words}
				</p>
			))}
			{kept?.length === 0 && <p>No statistic is kept.</p>}
			{kept && kept.length > 0 && (
				<div class="table">
					<table>
						<Head
							names={["statistic", "state", "since", "on disk", "CPU", "covers"]}
							acts
							sorted={{ by: Object.keys(SORTED), order, sort: (name) => setOrder(nextOrder(order, name)) }}
						/>
						<tbody>
							{ordered(kept, order).map((each) => (
								<Row key={each.statistic} found={each} act={act} />
							))}
						</tbody>
						<tfoot>
							<tr>
								<th scope="row">all</th>
								<td colSpan={2} />
								<td>{limits && quantity(limits.used_bytes, "B")}</td>
								<td>
									{quantity(
										kept.reduce((sum, each) => sum + each.cpu_ns, 0),
										"ns",
									)}
								</td>
								<td colSpan={2} />
							</tr>
						</tfoot>
					</table>
				</div>
			)}
			<AddForm add={(statistic, backfill) => act("add", statistic, { backfill })} />
			{limits && <LimitsForm key={recording} limits={limits} set={limit} />}
		</div>
	);
}

type Act = (action: string, statistic: string, more?: object) => Promise<boolean>;

function Row({ found, act }: { found: KeptFacts; act: Act }) {
	const { statistic } = found;
	const [pruning, setPruning] = useState(false);
	const paused = found.state === "paused";
	return (
		<>
			<tr data-kept={statistic}>
				<th scope="row">
					<button
						type="button"
						class="link"
						onClick={() => {
							if (add(statistic)) view.value = "worksheet";
						}}
					>
						{visible(statistic)}
					</button>
				</th>
				<td title={found.why}>{[found.state, found.why].filter(Boolean).join(": ")}</td>
				<td>{found.since_ns === null ? "" : `${momentWords(found.since_ns)} ${zoneWords()}`}</td>
				<td>{quantity(found.bytes, "B")}</td>
				<td>{quantity(found.cpu_ns, "ns")}</td>
				<td>
					{found.tiers
						.map((each) => ({ tier: each.tier, back: reach(each, found) }))
						.filter(({ back }) => back > 0)
						.map(({ tier, back }) => `${tier}: ${about(back)}`)
						.join(", ")}
				</td>
				<td>
					<span class="buttons">
						<button type="button" class="small" onClick={() => act(paused ? "resume" : "pause", statistic)}>
							{paused ? "Resume" : "Pause"}
						</button>
						{found.until_ns !== null && (
							<button type="button" class="small" aria-expanded={pruning} onClick={() => setPruning(!pruning)}>
								Delete old data
							</button>
						)}
						<Sure words="Drop" sure="Yes, drop" looks="small drop" act={() => void act("drop", statistic)} />
					</span>
				</td>
			</tr>
			{pruning && found.until_ns !== null && (
				<tr data-pruning={statistic}>
					<td colSpan={7}>
						<Prune
							until={found.until_ns}
							prune={(more) => act("prune", statistic, more)}
							over={() => setPruning(false)}
						/>
					</td>
				</tr>
			)}
		</>
	);
}

/** What is older than so many days goes, of all lengths of sums or of the shorter ones. */
function Prune({ until, prune, over }: { until: number; prune: (more: Older) => Promise<boolean>; over: () => void }) {
	const [days, setDays] = useState(1);
	const [tier, setTier] = useState<Older["tier"]>("1h");
	return (
		<form
			class="sentence"
			onSubmit={async (event) => {
				event.preventDefault();
				// a clock that began less than that ago has nothing older
				if (await prune({ before_ns: Math.max(0, Math.round(until - days * DAY)), tier })) over();
			}}
		>
			Delete kept data{" "}
			<select
				aria-label="What is dropped"
				value={tier}
				onChange={(event) => setTier(event.currentTarget.value as Older["tier"])}
			>
				{TIERS.map((each) => (
					<option key={each.tier} value={each.tier}>
						{each.goes}
					</option>
				))}
			</select>
			, all but the last{" "}
			<input
				type="number"
				aria-label="Days that stay"
				min={0}
				step="any"
				required
				style={{ width: "6em" }}
				value={String(days)}
				onInput={(event) => setDays(event.currentTarget.valueAsNumber || 0)}
			/>{" "}
			days.{" "}
			<button type="submit" class="small">
				Delete
			</button>{" "}
			<button type="button" class="small" onClick={over}>
				Cancel
			</button>
		</form>
	);
}

/** How far a tier goes back, in ns: its first and last sums may extend beyond the data; 0 if it is empty. */
export function reach(
	{ first_ns, until_ns }: KeptFacts["tiers"][number],
	kept: Pick<KeptFacts, "since_ns" | "until_ns">,
): number {
	if (first_ns === null || until_ns === null) return 0;
	return Math.min(until_ns, kept.until_ns ?? until_ns) - Math.max(first_ns, kept.since_ns ?? first_ns);
}

/** A length of time in whole days, hours, minutes or seconds, of which there are two at least. */
function about(ns: number): string {
	const seconds = Math.round(ns / 1e9);
	const unit = [86_400, 3600, 60].find((each) => seconds >= 2 * each) ?? 1;
	return lengthWords(Math.round(seconds / unit) * unit * 1e9);
}

function AddForm({ add }: { add: (statistic: string, backfill: boolean) => Promise<boolean> }) {
	const [statistic, setStatistic] = useState("");
	const [backfill, setBackfill] = useState(true);
	return (
		<form
			class="sentence"
			onSubmit={(event) => {
				event.preventDefault();
				void add(statistic.trim(), backfill);
			}}
		>
			<label>
				Keep{" "}
				<input
					aria-label="Statistic"
					required
					size={36}
					placeholder="io.ops[op=write][latency]"
					spellcheck={false}
					value={statistic}
					onInput={(event) => setStatistic(event.currentTarget.value)}
				/>
			</label>{" "}
			<label>
				<input type="checkbox" checked={backfill} onChange={(event) => setBackfill(event.currentTarget.checked)} /> from
				existing events as well
			</label>{" "}
			<button type="submit">Keep</button>
		</form>
	);
}
