// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { answerOf, problemOf, waitsOf } from "../../api/feed";
import { painterOf } from "../../api/painters";
import type { Drawable } from "../../api/question";
import { trouble } from "../../api/served";
import { catalogue, type GraphSpec, recording, whole } from "../../api/worksheet";
import type { Content } from "../../canvas/content";
import { Heat } from "../../canvas/heat";
import { lostWords } from "../../canvas/lost";
import type { DrawnMap } from "../../generated/api";
import type { LossesOfKind } from "../../generated/maps";
import { breakdownOf, rootOf, visible } from "../../lib/names";
import { titleOf } from "../../lib/titles";
import { spanWords } from "../times";
import { distinguishedKeys, left, listedIn, useContent, useLayers } from "./contents";
import { fieldsOf } from "./drill";
import "./graph.css";
import { HierarchyView, pathField } from "./hierarchy";
import { IoList } from "./io-list";
import { Menu } from "./menu";
import { otherTime } from "./other-time";
import { Panel } from "./panel";
import { PanelDivider, panelWidth } from "./panel-width";
import { forget, renew, stateOf } from "./state";
import { SubSecondView } from "./sub-second";
import { TimeGraph } from "./time-graph";
import { Toolbar } from "./toolbar";
import { amount, counted, rate } from "./values";
import { WhoIsThis } from "./who";

export { graphKeys } from "./keys";

/** A graph: its statistic, controls, left panel, plot, and marks. It is drawn again only when it changes. */
export function GraphView({ spec }: { spec: GraphSpec }) {
	return useMemo(() => <Graph spec={spec} />, [spec]);
}

function Graph({ spec }: { spec: GraphSpec }) {
	const answer = answerOf(spec).value;
	const state = stateOf(spec.id);
	const about = JSON.stringify([recording.value, rootOf(spec.statistic), breakdownOf(spec.statistic)]);
	const before = useRef(about);
	useLayoutEffect(() => {
		if (before.current !== about) renew(spec.id);
		before.current = about;
	}, [about]);
	const { layers, problem, waits } = useLayers(spec, answer);
	const content = useContent(spec, answer, layers);
	// keys act on these: they are those of what is seen
	useLayoutEffect(() => {
		state.content.value = content;
	}, [content]);
	const fields = fieldsOf(spec.statistic, catalogue.value).join();
	useLayoutEffect(() => {
		state.fields.value = fields ? fields.split(",") : [];
	}, [fields]);
	useLayoutEffect(() => () => forget(spec.id), [spec.id]);
	const other = otherTime(spec, answer);
	const name = visible(answer?.statistic ?? spec.statistic);
	const empty = answer?.kind === "map" && !answer.group;
	// what is wrong with all of the recording is said once
	const problems = trouble.value ? [] : [problemOf(spec).value, problem].filter(Boolean);
	return (
		<div
			class={problems.length > 0 && !answer ? "graph refused" : "graph"}
			style={{ "--panel": `${panelWidth.value}rem` }}
		>
			<div class="graph-head">
				<h2 title={name}>
					{titleOf(answer?.statistic ?? spec.statistic)} <code>{name}</code>
				</h2>
				<span class="quiet graph-sum">
					{sumOf(answer)}
					{other && ` (${spanWords(other, whole.value.from)})`}
				</span>
				<Toolbar spec={spec} answer={answer} />
			</div>
			<div class="graph-body">
				<Panel spec={spec} answer={answer} />
				<PanelDivider />
				<figure data-told={distinguishedKeys(spec, layers).length}>
					<TimeGraph spec={spec} content={content} label={labelOf(spec, answer)} />
					<figcaption class="quiet" data-words>
						<Caption spec={spec} answer={answer} empty={empty} waits={waits} />
					</figcaption>
					<small class="hint" aria-hidden="true">
						{hintOf(content, state.mark.value !== null)}
					</small>
				</figure>
			</div>
			{problems.map((words) => (
				<p key={words} class="problem" role="status">
					{words}
				</p>
			))}
			<WhoIsThis spec={spec} map={content instanceof Heat && answer?.kind === "map" ? answer.group : null} />
			{content instanceof Heat && <IoList spec={spec} y={content.look.group.y} unit={content.look.group.unit} />}
			{state.subSecond.value && <SubSecondView spec={spec} />}
			{spec.hierarchy && pathField(spec) && problems.length === 0 && <HierarchyView spec={spec} />}
			<Menu spec={spec} unit={answer?.kind === "map" ? (answer.group?.unit ?? "") : ""} />
		</div>
	);
}

/** What a pointer can do here; the keys are in the help. */
function hintOf(content: Content | null, marked: boolean): string {
	const map = Boolean(content?.cells);
	if (marked)
		return `${map ? "" : "with Ctrl, "}drag the mark: move · its edges: resize · z: zoom to it · Escape: unmark`;
	const drag = map ? "drag: mark a part" : "drag: zoom to its time · Ctrl + drag: mark";
	return `${drag} · Shift + drag: move in time · wheel, or drag below: zoom`;
}

/** What an answer adds up to, in words. */
function sumOf(answer: Drawable | null): string {
	if (!answer) return "";
	if (answer.kind === "map") return mapSum(answer);
	if (answer.kind === "percentiles") return counted(answer.events, answer);
	const { total, mean, unit } = answer;
	return [amount(total, unit), mean !== null && `${rate(mean, unit)} on average`].filter(Boolean).join(", ");
}

/** The number of I/Os of a map, and their bytes if the map has them. */
function mapSum({ events, group }: DrawnMap): string {
	const words = counted(events, { y: group?.y ?? "" });
	if (group?.weight !== "bytes") return words;
	const cells = group.maps[0]?.cells.counts ?? [];
	let bytes = 0;
	for (let k = 0; k < cells.length; k++) bytes += cells[k] ?? 0;
	return `${words}, ${counted(bytes, group)}`;
}

/** What an answer lacks, by kind. */
function lossesOf(answer: Drawable | null): readonly LossesOfKind[] {
	if (!answer) return [];
	return answer.kind === "map" ? (answer.group?.maps[0]?.lost ?? []) : answer.losses;
}

function labelOf(spec: GraphSpec, answer: Drawable | null): string {
	const adds_up = answer?.kind === "stack" && answer.adds_up;
	const painter = painterOf(spec, answer?.kind ?? "", adds_up);
	const kind = answer?.kind === "map" ? "heat map" : painter === "stack" ? "areas" : "lines";
	const lost = lostWords(lossesOf(answer).map((each) => [each.kind, each.count]));
	const words = [`${spec.statistic}, ${kind} over time: ${sumOf(answer) || "no answer yet"}`, lost]
		.filter(Boolean)
		.join("; ");
	return `${words}. Arrows move a crosshair, with Shift they mark a part.`;
}

/** Below the plot: what is not drawn, or only half. */
function Caption({
	spec,
	answer,
	empty,
	waits,
}: {
	spec: GraphSpec;
	answer: Drawable | null;
	empty: boolean;
	waits: boolean;
}) {
	const words = [
		waitsOf(spec).value && !answer && "asking…",
		waits && "asking for the maps of these values…",
		answer?.kind === "map" && left(spec, listedIn(stateOf(spec.id).items.value)),
		empty && `No I/O here has a ${breakdownOf(spec.statistic)}.`,
		stateOf(spec.id).outside.value,
		stateOf(spec.id).blank.value,
		stateOf(spec.id).lost.value,
		answer?.kind === "stack" && !answer.adds_up && "these values overlap or are averages: they don't add up",
		...(answer?.notes ?? []),
		...(answer?.kind === "map" ? (answer.group?.maps[0]?.notes ?? []) : []),
	].filter((each): each is string => Boolean(each));
	const said = [...new Set(words)];
	return <span title={said.join("\n")}>{said.join(" · ") || "\u00a0"}</span>;
}
