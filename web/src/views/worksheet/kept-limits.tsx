import { useState } from "preact/hooks";
import type { KeepLimits, KeptLimits } from "../../generated/api";
import { lengthWords } from "../../model/times";

const DAY_S = 86_400;
const GIB = 2 ** 30;

/** Lengths of sums, the shortest first; dropping one drops the shorter ones as well. */
export const TIERS = [
	{ tier: "1s", name: "second", goes: "by the second" },
	{ tier: "1m", name: "minute", goes: "by the second and minute" },
	{ tier: "1h", name: "hour", goes: "by the second, minute and hour" },
] as const;

/** What is asked for: all of it. */
export type Limits = Omit<KeepLimits, "recording">;

/** For how long a tier stays, in words: in days as long as these are whole. */
export function stays(limits: KeptLimits, tier: string): string {
	const seconds = limits.retention[tier] ?? 0;
	const days = seconds / DAY_S;
	return Number.isInteger(days) ? `${days} day${days === 1 ? "" : "s"}` : lengthWords(seconds * 1e9);
}

/** Whether something that is kept now could be beyond what is asked for. */
function lessens(now: KeptLimits, asked: Limits): boolean {
	const ages = TIERS.some(({ tier }) => (asked.retention?.[tier] ?? 0) < (now.retention[tier] ?? 0));
	return ages || (asked.bytes ?? Number.POSITIVE_INFINITY) < (now.bytes ?? Number.POSITIVE_INFINITY);
}

/**
 * Limits as a sentence with blanks; an empty one is no limit. What is not changed is sent as it was, to the byte. Where less would be
 * kept than before it asks whether that is meant: what is beyond a limit goes at once.
 */
export function LimitsForm({ limits, set }: { limits: KeptLimits; set: (limits: Limits) => Promise<boolean> }) {
	const [draft, setDraft] = useState<Record<string, string>>({});
	const [sure, setSure] = useState(false);
	const shown = (value: number | null) => (value === null ? "" : String(Number(value.toPrecision(6))));
	const blank = (label: string, name: string, now: number | null, unit: number, more: object = {}) => (
		<input
			type="number"
			aria-label={label}
			min={0}
			step="any"
			style={{ width: "7em" }}
			value={draft[name] ?? shown(now === null ? null : now / unit)}
			onInput={(event) => {
				setDraft({ ...draft, [name]: event.currentTarget.value });
				setSure(false);
			}}
			{...more}
		/>
	);
	const said = (name: string, now: number | null, unit: number) => {
		const text = draft[name];
		return text === undefined ? now : text === "" ? null : Number(text) * unit;
	};
	return (
		<form
			class="sentence"
			data-limits
			onSubmit={async (event) => {
				event.preventDefault();
				const size = said("bytes", limits.bytes, GIB);
				const retention = TIERS.map(({ tier }) => [
					tier,
					Math.round(said(tier, limits.retention[tier] ?? 0, DAY_S) ?? 0),
				]);
				const all = {
					bytes: size === null ? null : Math.round(size),
					cpu_share: said("cpu", limits.cpu_share, 0.01),
					retention: Object.fromEntries(retention) as Record<string, number>,
				};
				const asks = !sure && lessens(limits, all);
				setSure(asks);
				const sent = draft;
				if (!asks && (await set(all))) {
					// what was written meanwhile stays
					setDraft((now) => Object.fromEntries(Object.entries(now).filter(([name, text]) => sent[name] !== text)));
				}
			}}
		>
			All of them may take {blank("Size in GiB", "bytes", limits.bytes, GIB, { placeholder: "no limit" })} GiB on disk
			and {blank("Share of CPU time", "cpu", limits.cpu_share, 0.01, { placeholder: "no limit" })} % of all CPU time,
			and stay
			{TIERS.map(({ tier, name }, place) => (
				<span key={tier}>
					{place ? ", " : " "}by the {name} for{" "}
					{blank(`Days by the ${name}`, tier, limits.retention[tier] ?? 0, DAY_S, { required: true })} days
				</span>
			))}
			. <button type="submit">{sure ? "Set them: what is beyond goes now" : "Set limits"}</button>
			{limits.pending && <span class="quiet"> The recorder has not taken them up yet.</span>}
		</form>
	);
}
