// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { wholeAxis } from "../canvas/cells";
import type { Kind } from "../canvas/scale";
import type { YScale } from "../canvas/spaces";
import type { HeatMapGroup } from "../generated/maps";
import { Choice, Crop, Overlays } from "../lib/controls";
import { colours, theme, toggleTheme } from "../lib/theme";
import { MapView } from "./map";
import { type ChoiceSignal, embeds, kind, page, span, wholeSpan } from "./state";
import { WhoView } from "./who";

const SCALES: Kind[] = ["rank", "log", "linear"];
const AXES: YScale[] = ["log", "linear"];

/** The page: what it is of, the controls, and the maps below each other on one time axis. */
export function HeatMapApp({ choices }: { choices: ChoiceSignal[] }) {
	const { title, conditions, notes, groups } = page.value;
	return (
		<div class="maps" style={{ "--map-text": colours.value.text }}>
			<header>
				<h1>{title}</h1>
				{conditions.length > 0 && <p class="quiet">only {conditions.join(" and ")}</p>}
				{notes.map((note) => (
					<p key={note}>{note}</p>
				))}
				<MapControls>
					<button type="button" id="theme" onClick={toggleTheme}>
						{theme.value === "dark" ? "Light" : "Dark"}
					</button>
				</MapControls>
			</header>
			<main>
				{groups.map((group, i) => {
					const choice = choices[i];
					return choice && <Group key={group.y} group={group} choice={choice} />;
				})}
			</main>
		</div>
	);
}

/** What holds for all maps: how counts become colours, and the way back to all of time. */
export function MapControls({ children }: { children?: ComponentChildren }) {
	const whole = wholeSpan.value;
	const zoomed = span.value.from > whole.from || span.value.to < whole.to;
	return (
		<div class="controls no-print">
			<label>
				colour by{" "}
				<select
					id="color"
					value={kind.value}
					onChange={(event) => {
						kind.value = event.currentTarget.value as Kind;
					}}
				>
					{SCALES.map((each) => (
						<option key={each}>{each}</option>
					))}
				</select>
			</label>
			<button
				type="button"
				id="whole"
				disabled={!zoomed}
				onClick={() => {
					span.value = whole;
				}}
			>
				All time
			</button>
			{children}
			<span class="quiet">
				{embeds.value ? "After a click, wheel" : "Wheel"}: zoom time, with Shift: zoom y. Drag: mark a part, with Shift:
				move in time. Keys on a map: arrows, + and −, Escape.
			</span>
		</div>
	);
}

/** Maps of one y with their controls; `level` is the heading's. */
export function Group({
	group,
	choice,
	level: Heading = "h2",
}: {
	group: HeatMapGroup;
	choice: ChoiceSignal;
	level?: "h2" | "h3";
}) {
	const { axis, crop, lines, brush } = choice.value;
	const change = (part: Partial<typeof choice.value>) => {
		choice.value = { ...choice.value, ...part };
	};
	const marked = brush && group.maps[brush.map];
	return (
		<section aria-label={group.title} data-y={group.y}>
			<div class="controls">
				<Heading>{group.title}</Heading>
				<Choice
					label="scale"
					name="y-scale"
					values={AXES}
					value={axis.scale}
					onChange={(scale) => change({ axis: wholeAxis(group, scale, Math.max(0, crop)), brush: null })}
				/>
				<Crop
					shares={group.crops.map(([share]) => share)}
					value={crop}
					zoomed={crop < 0}
					onChange={(share) => change({ crop: share, axis: wholeAxis(group, axis.scale, share), brush: null })}
				/>
				{group.lines.length > 0 && <Overlays value={lines} onChange={(shown) => change({ lines: shown })} />}
				<button
					type="button"
					class="small all-y"
					onClick={() => change({ crop: 0, axis: wholeAxis(group, axis.scale, 0), brush: null })}
				>
					All of y
				</button>
				{brush && (
					<>
						<button
							type="button"
							class="small zoom-in"
							onClick={() => {
								const { from, to, low, high } = brush.area;
								span.value = { from, to: Math.min(to, wholeSpan.value.to) };
								change({
									axis: { ...axis, low: Math.max(low, axis.scale === "log" ? 0.5 : 0), high },
									crop: -1,
									brush: null,
								});
							}}
						>
							Zoom to the marked part
						</button>
						<button type="button" class="small" onClick={() => change({ brush: null })}>
							Unmark
						</button>
					</>
				)}
			</div>
			<MapView group={group} choice={choice} />
			{brush && marked && <WhoView group={group} map={marked} area={brush.area} />}
		</section>
	);
}
