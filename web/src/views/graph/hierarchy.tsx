import { useState } from "preact/hooks";
import type { Hierarchy, Node, StackAnswer } from "../../generated/api";
import { wordsOf } from "../../model/feed";
import { TOP } from "../../model/following";
import { breakdownOf, brokenDown } from "../../model/names";
import { edit, follows, type GraphSpec } from "../../model/worksheet";
import { useAsked, useRested } from "./asked";
import { type Branch, branchOf, devices, type Slice, slices } from "./branches";
import { stateOf } from "./state";
import { amount, percent, rate } from "./values";

const FIELDS = ["file", "mount", "device"];

/** The field whose names make a tree, "" for none: the graph's breakdown, or what its left panel lists. */
export function pathField(spec: GraphSpec): string {
	return [spec.by, breakdownOf(spec.statistic)].find((field) => FIELDS.includes(field)) ?? "";
}

/** Files by directory, or devices with their partitions, over the time that is shown: as a tree, or as an icicle. */
export function HierarchyView({ spec }: { spec: GraphSpec }) {
	const field = pathField(spec);
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
		? branchOf(tree.found.root as Node, tree.found.root.name)
		: flat.found
			? devices(
					flat.found.keys.map(({ key, total, mean }) => ({ key, total: flat.found?.total ? total : (mean ?? 0) })),
				)
			: null;
	const unit = tree.found ? (tree.found.unit === "B" ? "B/s" : "1/s") : (flat.found?.unit ?? "1/s");
	if (problem) return <p class="problem">{problem}</p>;
	if (!root) return <p class="quiet waiting">Adding up…</p>;
	const shown = { spec, field, root, unit };
	return (
		<section class="branches" aria-label={`${field}s of ${spec.statistic}`}>
			{spec.hierarchy === "icicle" ? <Icicle {...shown} /> : <Tree {...shown} />}
			{tree.found && tree.found.unnamed > 0 && (
				<p class="quiet">{amount(tree.found.unnamed, unit)} of what has no known name are not in it.</p>
			)}
		</section>
	);
}

interface Shown {
	spec: GraphSpec;
	field: string;
	root: Branch;
	unit: string;
}

/** A sum, or the average of what has none. */
const words = (value: number, unit: string): string => amount(value, unit) || rate(value, unit);

/** Highlight all that lies under a branch, or no longer; a menu for a single name. */
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

function Tree({ spec, field, root, unit }: Shown) {
	return (
		<ul class="tree">
			{root.children.map((branch) => (
				<Twig key={branch.path} spec={spec} field={field} root={root} unit={unit} branch={branch} depth={0} />
			))}
			{root.others > 0 && (
				<li class="quiet">
					{root.left} smaller ones: {amount(root.others, unit)}
				</li>
			)}
		</ul>
	);
}

function Twig({ branch, depth, ...shown }: Shown & { branch: Branch; depth: number }) {
	const { spec, field, root, unit } = shown;
	const [open, setOpen] = useState(depth === 0);
	const { chosen, ...does } = acts(spec, field, branch);
	const inner = branch.children.length > 0;
	return (
		<li>
			<span class="twig">
				<button
					type="button"
					class="fold"
					disabled={!inner}
					aria-expanded={inner ? open : undefined}
					aria-label={`${open ? "Close" : "Open"} ${branch.name}`}
					onClick={() => setOpen(!open)}
				>
					{inner ? (open ? "▾" : "▸") : "·"}
				</button>
				<button type="button" class="branch" aria-pressed={chosen} title={branch.path} {...does}>
					{branch.name}
				</button>
				<span class="quiet">
					{words(branch.total, unit)} ({percent(branch.total / (root.total || 1))})
				</span>
			</span>
			{inner && open && (
				<ul>
					{branch.children.map((each) => (
						<Twig key={each.path} {...shown} branch={each} depth={depth + 1} />
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

function Icicle({ spec, field, root, unit }: Shown) {
	const [path, setPath] = useState("");
	const found = slices(root, path, DEPTH);
	const rows = 1 + Math.max(0, ...found.map((slice) => slice.depth));
	return (
		<div class="icicle" style={{ height: `${1.6 * rows}rem` }}>
			{found.map((slice) => (
				<Part
					key={slice.branch.path}
					slice={slice}
					spec={spec}
					field={field}
					unit={unit}
					root={root}
					onZoom={setPath}
				/>
			))}
		</div>
	);
}

function Part({ slice, spec, field, unit, root, onZoom }: { slice: Slice; onZoom: (path: string) => void } & Shown) {
	const { branch, from, to, depth } = slice;
	const { chosen, ...does } = acts(spec, field, branch);
	const said = `${branch.path || "all"}: ${words(branch.total, unit)}, ${percent(branch.total / (root.total || 1))}`;
	return (
		<button
			type="button"
			class={chosen ? "slice chosen" : "slice"}
			data-tone={depth % 2}
			style={{ left: `${100 * from}%`, width: `${100 * (to - from)}%`, top: `${1.6 * depth}rem` }}
			title={`${said}\nDouble click: only this part`}
			aria-label={said}
			aria-pressed={chosen}
			{...does}
			onDblClick={() => onZoom(depth === 0 ? "" : branch.path)}
		>
			{branch.name || "all"}
		</button>
	);
}
