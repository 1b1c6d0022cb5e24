import { useEffect, useState } from "preact/hooks";
import { quantity } from "../../canvas/ticks";
import type { Kept, KeptFacts } from "../../generated/api";
import { ask, tell } from "../../model/ask";
import { view } from "../../model/session";
import { lengthWords, momentWords } from "../../model/times";
import { add, sheet } from "../../model/worksheet";

const EVERY = 2000;
const DAY = 86_400e9;

/** Statistics that outlive the events: since when, how large, what they cost; paused, gone on with, pruned, dropped, added. */
export function KeptPage() {
	const { recording } = sheet.value;
	const [found, setFound] = useState<KeptFacts[] | null>(null);
	const [problem, setProblem] = useState("");
	const [refusal, setRefusal] = useState("");
	const attempt = async (act: () => Promise<Kept>, say: (words: string) => void) => {
		try {
			setFound((await act()).kept);
			say("");
		} catch (error) {
			say(error instanceof Error ? error.message : String(error));
		}
	};
	const look = () => attempt(() => ask<Kept>("kept", { recording }), setProblem);
	useEffect(() => {
		void look();
		const timer = setInterval(look, EVERY);
		return () => clearInterval(timer);
	}, [recording]);
	const act = (action: string, statistic: string, more: object = {}) =>
		attempt(() => tell<Kept>("POST", `kept/${action}`, { recording, statistic, ...more }), setRefusal);
	const bytes = found?.reduce((sum, each) => sum + each.bytes, 0) ?? 0;
	return (
		<div class="page">
			<h2>Kept statistics of {recording}</h2>
			<p class="quiet">
				Events are kept within the recording's budget; what stands here outlives them: by the second for 7 days, by the
				minute for 14, by the hour for 90, unless a row says otherwise.
			</p>
			{[problem, refusal].filter(Boolean).map((words) => (
				<p key={words} class="problem" role="status">
					{words}
				</p>
			))}
			{found?.length === 0 && <p>None is kept yet.</p>}
			{found && found.length > 0 && (
				<table>
					<thead>
						<tr>
							<th scope="col">statistic</th>
							<th scope="col">state</th>
							<th scope="col">since (UTC)</th>
							<th scope="col">on disk</th>
							<th scope="col">CPU</th>
							<th scope="col">kept for</th>
							<th scope="col">
								<span class="unseen">actions</span>
							</th>
						</tr>
					</thead>
					<tbody>
						{found.map((each) => (
							<Row key={each.statistic} found={each} act={act} />
						))}
					</tbody>
					<tfoot>
						<tr>
							<th scope="row">all</th>
							<td colSpan={2} />
							<td>{quantity(bytes, "B")}</td>
							<td colSpan={3} />
						</tr>
					</tfoot>
				</table>
			)}
			<AddForm add={(statistic, backfill) => act("add", statistic, { backfill })} />
		</div>
	);
}

type Act = (action: string, statistic: string, more?: object) => Promise<void>;

function Row({ found, act }: { found: KeptFacts; act: Act }) {
	const { statistic } = found;
	const [sure, setSure] = useState("");
	const twice = (action: string, words: string, more?: () => object) => (
		<button
			type="button"
			class="small"
			onClick={() => {
				if (sure !== action) return setSure(action);
				setSure("");
				void act(action, statistic, more?.());
			}}
		>
			{sure === action ? `Yes, ${words.toLowerCase()}` : words}
		</button>
	);
	const paused = found.state === "paused";
	// a clock that began less than a day ago has nothing older, nor has what holds nothing yet
	const before = found.until_ns !== null && found.until_ns > DAY ? Math.round(found.until_ns - DAY) : null;
	return (
		<tr data-kept={statistic}>
			<th scope="row">
				<button
					type="button"
					class="link"
					onClick={() => {
						if (add(statistic)) view.value = "worksheet";
					}}
				>
					{statistic}
				</button>
			</th>
			<td title={found.why}>{[found.state, found.why].filter(Boolean).join(": ")}</td>
			<td>{found.since_ns === null ? "" : momentWords(found.since_ns)}</td>
			<td>{quantity(found.bytes, "B")}</td>
			<td>{quantity(found.cpu_ns, "ns")}</td>
			<td>
				{found.tiers
					.map(({ tier, keep_s }) => `${tier}: ${keep_s === null ? "for ever" : lengthWords(keep_s * 1e9)}`)
					.join(", ")}
			</td>
			<td>
				<span class="buttons">
					<button type="button" class="small" onClick={() => act(paused ? "resume" : "pause", statistic)}>
						{paused ? "Go on" : "Pause"}
					</button>
					{before !== null && twice("prune", "Drop all but a day", () => ({ before_ns: before }))}
					{twice("drop", "Drop")}
				</span>
			</td>
		</tr>
	);
}

function AddForm({ add }: { add: (statistic: string, backfill: boolean) => Promise<void> }) {
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
				the events that are still there, too
			</label>{" "}
			<button type="submit">Keep it</button>
		</form>
	);
}
