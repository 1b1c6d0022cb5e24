// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { isMapped, painterOf, paintersOf } from "../../api/painters";
import type { Drawable } from "../../api/question";
import { catalogue, edit, type GraphSpec, type Mode, type Painter } from "../../api/worksheet";
import { Choice, Crop, Overlays } from "../../lib/controls";
import { sourcesOf } from "./drill";
import { pathField } from "./hierarchy";
import { stateOf } from "./state";

export const KINDS = ["rank", "log", "linear"] as const;
export const CROPS = [0, 0.0001, 0.001, 0.01, 0.05] as const;
export const MODES: readonly Mode[] = ["highlight", "isolate", "exclude", "rainbow"];
export const HIERARCHIES = ["", "tree", "icicle"] as const;
const MODE_WORDS = { highlight: "highlighted", isolate: "alone", exclude: "left out", rainbow: "all in colour" };

/** What a painter is called; a line of a map is all of it as one number. */
const painterWords = (painter: Painter, mapped: boolean): string =>
	({ "": "", heat: "heat map", percentiles: "percentiles", stack: "areas", line: mapped ? "one line" : "lines" })[
		painter
	];

/** What a graph shows of its answer, and how. Rows keep their height whatever is chosen. */
export function Toolbar({ spec, answer }: { spec: GraphSpec; answer: Drawable | null }) {
	const change = (part: Partial<GraphSpec>) => edit(spec.id, part);
	const isSplit = (answer !== null && "keys" in answer) || (answer?.kind === "map" && spec.by !== "");
	const adds_up = answer?.kind === "stack" && answer.adds_up;
	const painters = paintersOf(spec.statistic, answer?.kind ?? "", adds_up);
	const mapped = painters[0] === "heat";
	const sources = sourcesOf(spec.statistic, catalogue.value);
	return (
		<fieldset
			class="graph-tools"
			aria-label={`How ${spec.statistic} is shown`}
			onFocusIn={(event) => (event.target as Element).scrollIntoView?.({ block: "nearest", inline: "nearest" })}
		>
			{sources.length > 1 && (
				<Choice
					label="source"
					name="source"
					title="Source of the numbers"
					values={sources.map((each) => each.name)}
					value={spec.source || (sources[0]?.name ?? "")}
					words={(name) => `${name}${sources.find((each) => each.name === name)?.counted ? " (counters)" : ""}`}
					onChange={(name) => change({ source: name === sources[0]?.name ? "" : name })}
				/>
			)}
			{answer && painters.length > 0 && (
				<Choice
					label="as"
					name="painter"
					title="How it is painted (L)"
					values={painters}
					value={painterOf(spec, answer.kind, adds_up)}
					words={(each) => painterWords(each, mapped)}
					onChange={(painter) => paintAs(spec, painter)}
				/>
			)}
			{isSplit && (
				<Choice
					label="chosen values"
					name="mode"
					title="What becomes of the values that are chosen in the left panel (h, i, u, r)"
					values={MODES}
					value={spec.mode}
					words={(each) => MODE_WORDS[each]}
					onChange={(mode) => change({ mode })}
				/>
			)}
			{answer?.kind === "percentiles" && (
				<Choice
					label="scale"
					name="y-scale"
					title="Of the vertical axis (y)"
					values={["log", "linear"] as const}
					value={spec.scale || "log"}
					onChange={(scale) => change({ scale })}
				/>
			)}
			{answer?.kind === "map" && <MapTools spec={spec} answer={answer} />}
			{pathField(spec) && (
				<Choice
					label="hierarchy"
					name="hierarchy"
					values={HIERARCHIES}
					value={spec.hierarchy}
					words={(each) => each || "none"}
					onChange={(hierarchy) => change({ hierarchy })}
				/>
			)}
		</fieldset>
	);
}

/** Paint it otherwise; values that were chosen of a map are none of its percentiles, nor of its one line. */
export function paintAs(spec: GraphSpec, painter: Painter): void {
	edit(spec.id, isMapped(spec.statistic) ? { painter, highlights: [] } : { painter });
}

function MapTools({ spec, answer }: { spec: GraphSpec; answer: Drawable & { kind: "map" } }) {
	const [more, setMore] = useState(false);
	const change = (part: Partial<GraphSpec>) => edit(spec.id, part);
	const group = answer.group;
	const band = stateOf(spec.id).band;
	return (
		<>
			<Crop
				shares={CROPS}
				value={spec.crop}
				zoomed={spec.rows !== null}
				onChange={(crop) => change({ crop, rows: null })}
			/>
			{band.value && (
				<button
					type="button"
					class="small zoom-rows"
					onClick={() => {
						change({ rows: band.value });
						band.value = null;
					}}
				>
					Zoom to chosen values
				</button>
			)}
			<button
				type="button"
				class="small all-rows"
				disabled={spec.rows === null}
				title="All values (Z)"
				onClick={() => change({ rows: null })}
			>
				All values
			</button>
			<button type="button" class="small" aria-expanded={more} onClick={() => setMore(!more)}>
				{more ? "Less" : "More"}
			</button>
			{more && (
				<>
					<Choice
						label="colour by"
						name="colour"
						title="How counts become colours (q)"
						values={KINDS}
						value={spec.colour}
						onChange={(colour) => change({ colour })}
					/>
					<Choice
						label="scale"
						name="y-scale"
						title="Of the vertical axis (y)"
						values={["log", "linear"] as const}
						value={spec.scale || (group?.y_scale ?? "log")}
						onChange={(scale) => change({ scale, rows: null })}
					/>
					{group && group.lines.length > 0 && (
						<Overlays value={spec.overlays} onChange={(overlays) => change({ overlays })} />
					)}
				</>
			)}
		</>
	);
}
