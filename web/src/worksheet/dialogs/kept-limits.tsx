// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { KeepLimits, KeptLimits } from "../../generated/api";
import { lengthWords } from "../times";

const DAY_S = 86_400;
const GIB = 2 ** 30;

/** Lengths of sums, the shortest first; dropping one drops the shorter ones as well. */
export const TIERS = [
	{ tier: "1s", name: "second", goes: "by the second" },
	{ tier: "1m", name: "minute", goes: "by the second and minute" },
	{ tier: "1h", name: "hour", goes: "by the second, minute and hour" },
] as const;

/** Requested limits; those that are not named stay as they are. */
export type Limits = Partial<Omit<KeepLimits, "recording">>;

/** What was written into the blanks, by their names. */
export type Draft = Readonly<Record<string, string>>;

/** A limit as its blank shows it. */
const shown = (value: number | null, unit: number) =>
	value === null ? "" : String(Number((value / unit).toPrecision(6)));

/** The limits that a draft makes others than they are. */
export function changesOf(limits: KeptLimits, draft: Draft): Limits {
	const said = (name: string, now: number | null, unit: number) => {
		const text = draft[name];
		if (text === undefined || text === shown(now, unit)) return undefined;
		return text === "" ? null : Number(text) * unit;
	};
	const [size, share] = [said("bytes", limits.bytes, GIB), said("cpu", limits.cpu_share, 0.01)];
	const tiers = TIERS.flatMap(({ tier }) => {
		const seconds = said(tier, limits.retention[tier] ?? 0, DAY_S);
		return seconds === undefined ? [] : [[tier, Math.round(seconds ?? 0)] as const];
	});
	return {
		...(size === undefined ? {} : { bytes: size === null ? null : Math.round(size) }),
		...(share === undefined ? {} : { cpu_share: share }),
		retention: Object.fromEntries(tiers),
	};
}

/** For how long a tier stays, in words: in days as long as these are whole. */
export function stays(limits: KeptLimits, tier: string): string {
	const seconds = limits.retention[tier] ?? 0;
	const days = seconds / DAY_S;
	return Number.isInteger(days) ? `${days} day${days === 1 ? "" : "s"}` : lengthWords(seconds * 1e9);
}

/** Whether kept statistics may exceed the requested limits. */
function lessens(now: KeptLimits, asked: Limits): boolean {
	const ages = Object.entries(asked.retention ?? {}).some(([tier, seconds]) => seconds < (now.retention[tier] ?? 0));
	return ages || (asked.bytes ?? Number.POSITIVE_INFINITY) < (now.bytes ?? Number.POSITIVE_INFINITY);
}

/**
 * Limits as a sentence with blanks; an empty one is no limit. Only what is changed is set. Where less would be kept than before it asks
 * whether that is meant, of the limits as they are then: what is beyond a limit goes at once.
 */
export function LimitsForm({ limits, set }: { limits: KeptLimits; set: (limits: Limits) => Promise<boolean> }) {
	const [draft, setDraft] = useState<Draft>({});
	/** The limits of which it asks whether less is meant. */
	const [asks, setAsks] = useState("");
	const now = JSON.stringify([limits.bytes, limits.cpu_share, limits.retention]);
	const sure = asks === now;
	const blank = (label: string, name: string, now: number | null, unit: number, more: object = {}) => (
		<input
			type="number"
			aria-label={label}
			min={0}
			step="any"
			style={{ width: "7em" }}
			value={draft[name] ?? shown(now, unit)}
			onInput={(event) => {
				setDraft({ ...draft, [name]: event.currentTarget.value });
				setAsks("");
			}}
			{...more}
		/>
	);
	return (
		<form
			class="sentence"
			data-limits
			onSubmit={async (event) => {
				event.preventDefault();
				const changes = changesOf(limits, draft);
				const doubtful = !sure && lessens(limits, changes);
				setAsks(doubtful ? now : "");
				const sent = draft;
				if (!doubtful && (await set(changes))) {
					// later input is kept
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
