// SPDX-License-Identifier: Apache-2.0
import type { Node } from "../generated/api";

/** A part of a tree: `names` are the whole names that lie under it, those that are too small to be named left out. */
export interface Branch {
	name: string;
	path: string;
	total: number;
	others: number;
	left: number;
	names: string[];
	children: Branch[];
}

/** A branch as an icicle has it: its share of the width, and its depth. */
export interface Slice {
	branch: Branch;
	from: number;
	to: number;
	depth: number;
}

/** Directories and files; `path` is that of the node. Names under the root begin with a slash, or with `lead`. */
export function branchOf(node: Node, path: string, lead = "/"): Branch {
	const children = node.children.map((child) => branchOf(child, `${path}${path ? "/" : lead}${child.name}`));
	const own = path && node.own > 0 ? [path] : [];
	const { name, total, others, left } = node;
	return { name, path, total, others, left, names: [...own, ...children.flatMap((child) => child.names)], children };
}

/**
 * Devices with their partitions below them: the value of a disk includes those of its partitions. `all`: the total, if the list also
 * has stacked devices, which count the same I/Os again.
 */
export function devices(values: readonly { key: string; total: number }[], all?: number): Branch {
	const parent = (key: string) =>
		values.find((each) => key !== each.key && key.startsWith(each.key) && partition(each.key, key))?.key;
	const branch = ({ key, total }: { key: string; total: number }): Branch => {
		const children = values.filter((each) => parent(each.key) === key).map(branch);
		return { name: key, path: key, total, others: 0, left: 0, names: [key], children };
	};
	const children = values.filter((each) => parent(each.key) === undefined).map(branch);
	const total = all ?? children.reduce((sum, each) => sum + each.total, 0);
	return { name: "", path: "", total, others: 0, left: 0, names: children.flatMap((each) => each.names), children };
}

/** sda1 is a partition of sda, nvme0n1p1 of nvme0n1; sdaa is not one of sda, nor loop10 of loop1. */
function partition(disk: string, key: string): boolean {
	const rest = key.slice(disk.length);
	return /\d$/.test(disk) ? /^p\d+$/.test(rest) : /^\d+$/.test(rest);
}

/** The slices of an icicle under a branch, so many levels deep; those too thin to be seen are left out. */
export function slices(root: Branch, path: string, depth: number, thin = 0.002): Slice[] {
	const found: Slice[] = [];
	const cut = (branch: Branch, from: number, to: number, level: number) => {
		found.push({ branch, from, to, depth: level });
		if (level + 1 >= depth) return;
		const scale = (to - from) / (Math.max(branch.total, sum(branch)) || 1);
		let at = from;
		for (const child of branch.children) {
			const end = at + child.total * scale;
			if (end - at >= thin) cut(child, at, end, level + 1);
			at = end;
		}
	};
	cut(at(root, path) ?? root, 0, 1, 0);
	return found;
}

/** The branches from the root to that of a path, which is the last; the root alone where there is none of it. */
export function trail(root: Branch, path: string): Branch[] {
	for (const child of path === root.path ? [] : root.children) {
		const found = trail(child, path);
		if (found.at(-1)?.path === path) return [root, ...found];
	}
	return [root];
}

const sum = (branch: Branch) => branch.children.reduce((total, child) => total + child.total, 0);

function at(branch: Branch, path: string): Branch | undefined {
	if (branch.path === path) return branch;
	for (const child of branch.children) {
		const found = at(child, path);
		if (found) return found;
	}
	return undefined;
}
