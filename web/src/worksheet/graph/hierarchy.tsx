// SPDX-License-Identifier: Apache-2.0

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { wordsOf } from "../../api/feed";
import { TOP } from "../../api/stream-params";
import { edit, follows, type GraphSpec } from "../../api/worksheet";
import { percent } from "../../canvas/ticks";
import type { Hierarchy, Node, StackAnswer } from "../../generated/api";
import { type Branch, branchOf, devices, type Slice, slices, trail } from "../../lib/branches";
import { breakdownOf, brokenDown, visible } from "../../lib/names";
import { useAsked, useRested } from "./use-answer";
import "./hierarchy.css";
import { walk } from "../../lib/list-keyboard";
import { stateOf } from "./state";
import { amount, rate } from "./values";

/** Fields with paths that do not begin with a slash: enclosure/slot, pool/vdev. */
const RELATIVE = ["slot", "vdev"];
const FIELDS = ["file", "mount", "device", ...RELATIVE];

/** The field whose names make a tree, "" for none: the graph's breakdown, or what its left panel lists. */
export function pathField(spec: GraphSpec): string {
	return [spec.by, breakdownOf(spec.statistic)].find((field) => FIELDS.includes(field)) ?? "";
}

/** Files by directory, or devices with their partitions, over the time that is shown: as a tree, or as an icicle. */
export function HierarchyView({ spec }: { spec: GraphSpec }) {
	const field = pathField(spec);
	const { branch } = stateOf(spec.id);
	const path = branch.value;
	const place = useRef<HTMLElement>(null);
	const zoomed = useRef(false);
	const setPath = (other: string) => {
		zoomed.current = other !== path;
		branch.value = other;
	};
	useLayoutEffect(() => {
		// the focused element may be removed with the values that are no longer shown
		if (zoomed.current && document.activeElement === document.body)
			place.current?.querySelector<HTMLElement>(".crumbs [aria-current]")?.focus();
		zoomed.current = false;
	}, [path]);
	const base = useRested(() => wordsOf(spec), 150, [spec]);
	const { recording, source, from, to } = base;
	const statistic = brokenDown(spec.statistic, field);
	const words = { recording: recording ?? "", statistic, source: source ?? "", from: from ?? null, to: to ?? null };
	const pace = follows.value ? 2000 : 100;
	const tree = useAsked<Hierarchy>("hierarchy", field === "device" ? null : words, pace);
	const flat = useAsked<StackAnswer>(
		"query",
		field === "device" ? { ...words, interval: "whole", top: TOP } : null,
		pace,
	);
	const problem = tree.problem || flat.problem;
	const root = tree.found
		? branchOf(tree.found.root as Node, tree.found.root.name, RELATIVE.includes(field) ? "" : "/")
		: flat.found
			? devicesOf(flat.found)
			: null;
	const unit = tree.found ? (tree.found.unit === "B" ? "B/s" : "1/s") : (flat.found?.unit ?? "1/s");
	if (problem) return <p class="problem">{problem}</p>;
	if (!root) return <p class="quiet waiting">Adding up…</p>;
	const shown = { spec, field, root, unit, path, onZoom: setPath };
	return (
		<section ref={place} class="branches" aria-label={`${field}s of ${spec.statistic}`}>
			<Crumbs root={root} path={path} onZoom={setPath} />
			{spec.hierarchy === "icicle" ? <Icicle {...shown} /> : <Tree {...shown} />}
			{flat.found && !flat.found.adds_up && (
				<p class="quiet">The values do not add up: some are parts of other values, or averages.</p>
			)}
			{tree.found && tree.found.unnamed > 0 && (
				<p class="quiet">{amount(tree.found.unnamed, unit)} of what has no known name are not in it.</p>
			)}
		</section>
	);
}

/** Devices as a tree; levels and shares have no sums, so they show averages. */
function devicesOf({ keys, adds_up, total, mean }: StackAnswer): Branch {
	const values = keys.map((each) => ({ key: each.key, total: total ? each.total : (each.mean ?? 0) }));
	return devices(values, adds_up ? undefined : total || (mean ?? 0));
}

interface Shown {
	spec: GraphSpec;
	field: string;
	root: Branch;
	unit: string;
	/** The part that is shown alone, "" for all. */
	path: string;
	onZoom: (path: string) => void;
}

/** The way from all to the part that is shown; each step shows that part. */
function Crumbs({ root, path, onZoom }: Pick<Shown, "root" | "path" | "onZoom">) {
	const way = trail(root, path);
	return (
		<nav class="crumbs" aria-label="The part that is shown">
			{way.map((branch, i) => (
				<button
					key={branch.path}
					type="button"
					class="small"
					aria-current={i === way.length - 1 ? "true" : undefined}
					onClick={() => onZoom(branch.path)}
					onKeyDown={zoomKeys(root, path, branch, onZoom)}
				>
					{visible(branch.name) || "all"}
				</button>
			))}
		</nav>
	);
}

/** A button that shows a part alone. */
function Only({ branch, onZoom }: { branch: Branch; onZoom: (path: string) => void }) {
	const words = `Only ${branch.path || "all"}`;
	return (
		<button
			type="button"
			class="small only"
			title={`${words} (z)`}
			aria-label={words}
			onClick={() => onZoom(branch.path)}
		>
			⤢
		</button>
	);
}

/** Whether a branch can be shown alone: not if it is empty. */
const holds = (branch: Branch): boolean => branch.children.length > 0;

/** Keys on a branch: z shows it alone, Z and Backspace show its parent. */
function zoomKeys(root: Branch, path: string, branch: Branch, onZoom: (path: string) => void) {
	return (event: KeyboardEvent) => {
		if (event.key === "z") {
			if (holds(branch)) onZoom(branch.path);
		} else if (event.key === "Z" || event.key === "Backspace") onZoom(trail(root, path).at(-2)?.path ?? "");
		else return;
		event.preventDefault();
		event.stopPropagation();
	};
}

/** A sum, or the average of what has none. */
const words = (value: number, unit: string): string => amount(value, unit) || rate(value, unit);

/** Highlight everything under a branch, or clear it; a menu for a single name. */
function acts(spec: GraphSpec, field: string, branch: Branch) {
	const chosen = branch.names.length > 0 && branch.names.every((name) => spec.highlights.includes(name));
	return {
		chosen,
		onClick: (event: MouseEvent) => {
			const others = event.shiftKey ? spec.highlights.filter((each) => !branch.names.includes(each)) : [];
			edit(spec.id, { highlights: chosen ? others : [...others, ...branch.names] });
		},
		onContextMenu: (event: MouseEvent) => {
			const [value] = branch.names;
			if (!value || branch.names.length > 1) return;
			event.preventDefault();
			const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
			// the menu key has no place of its own
			const keyed = event.clientX === 0 && event.clientY === 0;
			const at = keyed ? { x: box.left + 20, y: box.bottom } : { x: event.clientX, y: event.clientY };
			stateOf(spec.id).menu.value = { ...at, about: { field, value } };
		},
	};
}

function Tree(shown: Shown) {
	const top = trail(shown.root, shown.path).at(-1) ?? shown.root;
	return (
		<ul class="tree">
			{top.children.map((branch) => (
				<Twig key={branch.path} {...shown} branch={branch} isOpen />
			))}
			{top.others > 0 && (
				<li class="quiet">
					{top.left} smaller ones: {amount(top.others, shown.unit)}
				</li>
			)}
		</ul>
	);
}

/** `isOpen`: whether it is open at first. A single branch in an open one is open as well. */
function Twig({ branch, isOpen, ...shown }: Shown & { branch: Branch; isOpen: boolean }) {
	const { spec, field, root, unit, path, onZoom } = shown;
	const [open, setOpen] = useState(isOpen);
	const { chosen, ...does } = acts(spec, field, branch);
	const inner = holds(branch);
	return (
		<li>
			<span class="twig">
				<button
					type="button"
					class="fold"
					disabled={!inner}
					aria-expanded={inner ? open : undefined}
					aria-label={`${open ? "Close" : "Open"} ${visible(branch.name)}`}
					onClick={() => setOpen(!open)}
				>
					{inner ? (open ? "▾" : "▸") : "·"}
				</button>
				<button
					type="button"
					class="branch"
					aria-pressed={chosen}
					title={visible(branch.path)}
					{...does}
					onDblClick={() => inner && onZoom(branch.path)}
					onKeyDown={zoomKeys(root, path, branch, onZoom)}
				>
					{visible(branch.name)}
				</button>
				{inner && <Only branch={branch} onZoom={onZoom} />}
				<span class="quiet">
					{words(branch.total, unit)} ({percent(branch.total / (root.total || 1))})
				</span>
			</span>
			{inner && open && (
				<ul>
					{branch.children.map((each) => (
						<Twig key={each.path} {...shown} branch={each} isOpen={isOpen && branch.children.length === 1} />
					))}
					{branch.others > 0 && (
						<li class="quiet">
							{branch.left} smaller ones: {amount(branch.others, unit)}
						</li>
					)}
				</ul>
			)}
		</li>
	);
}

const DEPTH = 8;

/** A slice so wide, as a share of all, has room for a button. */
const ROOM = 0.05;

function Icicle(shown: Shown) {
	const found = slices(shown.root, shown.path, DEPTH);
	const rows = 1 + Math.max(0, ...found.map((slice) => slice.depth));
	return (
		<div
			class="icicle"
			role="toolbar"
			aria-label={`${shown.field}s of ${shown.spec.statistic}`}
			style={{ height: `${1.6 * rows}rem` }}
			tabIndex={-1}
			onKeyDown={walk}
		>
			{found.map((slice) => (
				<Part key={slice.branch.path} {...shown} slice={slice} />
			))}
		</div>
	);
}

function Part({ slice, ...shown }: { slice: Slice } & Shown) {
	const { spec, field, root, unit, path, onZoom } = shown;
	const { branch, from, to, depth } = slice;
	const { chosen, ...does } = acts(spec, field, branch);
	const said = `${visible(branch.path) || "all"}: ${words(branch.total, unit)}, ${percent(branch.total / (root.total || 1))}`;
	const zooms = holds(branch) && depth > 0;
	return (
		<div
			class="place"
			data-depth={depth}
			style={{ left: `${100 * from}%`, width: `${100 * (to - from)}%`, top: `${1.6 * depth}rem` }}
		>
			<button
				type="button"
				class={chosen ? "slice chosen" : "slice"}
				data-tone={depth % 2}
				title={`${said}\nz, double click: only this part`}
				aria-label={said}
				aria-pressed={chosen}
				{...does}
				onDblClick={() => (depth === 0 || zooms) && onZoom(depth === 0 ? "" : branch.path)}
				onKeyDown={zoomKeys(root, path, branch, onZoom)}
			>
				{branch.name || "all"}
			</button>
			{zooms && to - from >= ROOM && <Only branch={branch} onZoom={onZoom} />}
		</div>
	);
}
