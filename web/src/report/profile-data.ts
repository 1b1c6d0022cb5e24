// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import type { ProfileCell, ProfileChange, ProfileParts, Profiles } from "../generated/report";
import type { Branch } from "../lib/branches";
import { embedded } from "../lib/decode";
import { visible } from "../lib/names";

/** The profiles: undefined until the reader comes to them, an error when they can't be unpacked. */
export const profiles = signal<Profiles | Error | undefined>(undefined);

/** Whether the report has profiles. */
export const hasProfiles = () => document.getElementById("iolab-profiles") !== null;

/** The cell that is shown, by its place. */
export const profilePlace = signal(0);

let loading = false;

/** Unpack the profiles, once. */
export function loadProfiles(): void {
	if (loading) return;
	loading = true;
	embedded<Profiles>("iolab-profiles").then(
		(found) => {
			profiles.value = found;
		},
		(error: unknown) => {
			profiles.value = error instanceof Error ? error : new Error(String(error));
		},
	);
}

/** The part of a branch; -1 for all parts. */
export const partOf = (branch: Branch): number => (branch.path === "" ? -1 : Number(branch.path));

/** A part's name as a page may have it. */
export const nameOf = (parts: ProfileParts, part: number): string => visible(parts.names[parts.name[part] ?? -1] ?? "");

/** The parts as a tree under one root that holds everything, each as wide as `widths` says; a branch's path is its part's place. */
export function treeOf(parts: ProfileParts, widths: readonly number[]): Branch {
	const branch = (name: string, path: string, total: number): Branch => ({
		name,
		path,
		total,
		others: 0,
		left: 0,
		names: [],
		children: [],
	});
	// of the busy samples: what is not drawn is left blank at the right
	const root = branch("", "", 1);
	const all = parts.name.map((_, part) => branch(nameOf(parts, part), String(part), widths[part] ?? 0));
	all.forEach((each, part) => {
		(all[parts.parent[part] ?? -1] ?? root).children.push(each);
	});
	return root;
}

/** Which functions a flame graph shows. */
export type View = "all" | "kernel" | "user";

/**
 * A cell with functions of one kind alone, below their processes. Parts of the other kind are left out: what they called moves up to
 * the nearest part that remains, and parts of the same name there become one. Shares stay those of all busy samples.
 */
export function viewOf(cell: ProfileCell, view: View): ProfileCell {
	if (view === "all") return cell;
	const { parts } = cell;
	const wanted = view === "kernel" ? 1 : 0;
	const kept: ProfileParts = { names: parts.names, name: [], parent: [], kernel: [] };
	const places: number[] = [];
	const byName = new Map<string, number>();
	const isKept: boolean[] = [];
	// parents come before their children
	parts.name.forEach((name, part) => {
		const above = parts.parent[part] ?? -1;
		const parent = above < 0 ? -1 : (places[above] ?? -1);
		isKept.push(above < 0 || parts.kernel[part] === wanted);
		if (!isKept[part]) {
			places.push(parent);
			return;
		}
		const key = `${parent} ${name}`;
		const place = byName.get(key) ?? kept.name.length;
		if (place === kept.name.length) {
			byName.set(key, place);
			kept.name.push(name);
			kept.parent.push(parent);
			kept.kernel.push(parts.kernel[part] ?? 0);
		}
		places.push(place);
	});
	const summed = (values: readonly number[]) => {
		const sums = kept.name.map(() => 0);
		places.forEach((place, part) => {
			if (isKept[part]) sums[place] = (sums[place] ?? 0) + (values[part] ?? 0);
		});
		return sums;
	};
	const profiles = cell.profiles.map((profile) => ({
		...profile,
		samples: summed(profile.samples),
		shares: summed(profile.shares),
	}));
	const changes = cell.changes.map((change) => ({
		...change,
		changes: summed(change.changes),
		functions: change.functions.filter((line) => line.kernel === (view === "kernel")),
	}));
	return { title: cell.title, parts: kept, profiles, changes };
}

/** The share of a function in each profile of a cell, by the places of its profiles. */
export interface FrameRow {
	place: number;
	title: string;
	shares: (readonly [variant: string, share: number])[];
}

/** A function (or process) in all cells, wherever it was called from; each stack counts once. */
export function frameInCells(all: Profiles, cell: ProfileCell, part: number): FrameRow[] {
	const name = cell.parts.names[cell.parts.name[part] ?? -1];
	const isProcess = (cell.parts.parent[part] ?? -1) < 0;
	return all.cells.map(({ title, parts, profiles }, place) => {
		const number = parts.names.indexOf(name ?? "");
		const same = new Set(
			parts.name.flatMap((other, at) =>
				other === number && parts.kernel[at] === cell.parts.kernel[part] && (parts.parent[at] ?? -1) < 0 === isProcess
					? [at]
					: [],
			),
		);
		return {
			place,
			title,
			shares: profiles.map((profile) => [profile.variant, shareWithin(parts, same, profile.shares)] as const),
		};
	});
}

/** Widths of the difference of two profiles: the mean of both shares, so that removed parts have a width as well. */
export function meanShares(cell: ProfileCell, change: ProfileChange): number[] {
	const [before, after] = [cell.profiles[change.before], cell.profiles[change.after]];
	return cell.parts.name.map((_, part) => ((before?.shares[part] ?? 0) + (after?.shares[part] ?? 0)) / 2);
}

/** Parts with a displayed name that contains the words, in any case; none where there are no words. */
export function matching(parts: ProfileParts, words: string): Set<number> {
	const wanted = words.trim().toLowerCase();
	if (!wanted) return new Set();
	const names = new Set(
		parts.names.flatMap((name, place) => (visible(name).toLowerCase().includes(wanted) ? [place] : [])),
	);
	return new Set(parts.name.flatMap((name, part) => (names.has(name) ? [part] : [])));
}

/** The share of the parts of a set, each stack counted once: of those within each other the outermost counts. */
export function shareWithin(parts: ProfileParts, found: ReadonlySet<number>, shares: readonly number[]): number {
	const covered = new Set<number>();
	let sum = 0;
	// parents come before their children
	for (let part = 0; part < parts.name.length; part++) {
		const above = covered.has(parts.parent[part] ?? -1);
		if (above || found.has(part)) covered.add(part);
		if (!above && found.has(part)) sum += shares[part] ?? 0;
	}
	return sum;
}

/** The largest difference, either way, of a part and all below it; of all parts for -1. */
export function mostWithin(parts: ProfileParts, part: number, changes: readonly number[]): number {
	const within = new Set([part]);
	let most = 0;
	// parents come before their children
	changes.forEach((change, place) => {
		if (place !== part && !within.has(parts.parent[place] ?? -1)) return;
		within.add(place);
		most = Math.max(most, Math.abs(change));
	});
	return most;
}

/** Steps of colour on either side of no difference. */
export const STEPS = 5;

/** The step of a difference, -5 to 5; `most` is where the colours end. */
export function stepOf(change: number, most: number): number {
	return most > 0 ? Math.round(STEPS * Math.max(-1, Math.min(1, change / most))) || 0 : 0;
}

/** `12.3 %`, `0.12 %`. */
export const busyShare = (share: number): string => `${(100 * share).toFixed(Math.abs(share) < 0.01 ? 2 : 1)} %`;

/** `+1.3 points`. */
export function points(change: number): string {
	const text = (100 * change).toFixed(Math.abs(change) < 0.01 ? 2 : 1);
	return `${change >= 0 ? "+" : ""}${text} points`;
}
