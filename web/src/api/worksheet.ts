// SPDX-License-Identifier: Apache-2.0
import { computed, signal } from "@preact/signals";
import type { GraphSpec, RecordingFacts, Span, StatisticFacts, Tick, Worksheet } from "../generated/api";

export type { GraphSpec, Span, Worksheet };

/** How a graph is painted; "" leaves it to the kind of the answer. */
export type Painter = GraphSpec["painter"];
/** What becomes of the values that are highlighted: shown in colour, alone, left out; or all values in colour. */
export type Mode = GraphSpec["mode"];

export const SECOND = 1e9;
/** Graphs of a worksheet: as many as one stream follows. */
export const MOST = 8;
export const EMPTY: Worksheet = {
	schema: 1,
	name: "",
	recording: "",
	time: { live: 60 },
	compare: null,
	colours: {},
	graphs: [],
};

export const sheet = signal<Worksheet>(EMPTY);
/** The second that is selected, on all graphs of one time. */
export const cursor = signal<Span | null>(null);
/** The time under the pointer. */
export const hover = signal<number | null>(null);
/** A replay requests so many ns beyond the time shown; 0 at rest. */
export const ahead = signal(0);
/** The graph that keys act on, by id; "" for none. */
export const focus = signal("");

/** Recordings, the statistics of the shown one, and its end. */
export const recordings = signal<RecordingFacts[]>([]);
export const catalogue = signal<StatisticFacts[]>([]);
export const tick = signal<Tick | null>(null);
/** Why the last wish was refused, in words; "" otherwise. */
export const refused = signal("");

/** Parts of the worksheet: what reads one of them is not rendered again when only the time changes. */
export const graphs = computed(() => sheet.value.graphs);
export const recording = computed(() => sheet.value.recording);
export const compared = computed(() => sheet.value.compare);
export const sheetName = computed(() => sheet.value.name);

/** The recording that is shown. */
export const facts = computed(() => recordings.value.find((each) => each.name === recording.value));

/** All that was recorded so far. */
export const whole = computed<Span>(() => {
	const from = tick.value?.first_ns ?? facts.value?.first_ns ?? 0;
	const last = tick.value?.last_ns ?? facts.value?.last_ns ?? null;
	return { from, until: last === null ? from + SECOND : Math.max(last + 1, from + 1) };
});

/** Until when the newest of what is recorded is there: less than all of it where the clock was set back before that was begun. */
const newest = computed(() => {
	const now = tick.value?.now_ns ?? null;
	return now === null ? whole.value.until : Math.min(now + 1, whole.value.until);
});

/** The overlap of the current recording with the earlier end, in ns, after a clock was set back; 0 if there is none. */
export const behind = computed(() => whole.value.until - newest.value);

/** The worksheet's time as a span: while live it ends with what came last. */
export const time = computed<Span>(() => {
	const { time: asked } = sheet.value;
	if (!("live" in asked)) return asked;
	return { from: newest.value - asked.live * SECOND, until: newest.value };
});

/** Whether the worksheet follows what is being recorded. */
export const follows = computed(() => "live" in sheet.value.time && (tick.value?.live ?? facts.value?.live ?? false));

/** The time that a graph shows. */
export function spanOf(spec: GraphSpec): Span {
	return spec.synced ? time.value : (spec.span ?? time.value);
}

/** Move a graph in time, with all others that share its time. */
export function setSpan(spec: GraphSpec, span: Span): void {
	if (spec.synced) sheet.value = { ...sheet.value, time: span };
	else edit(spec.id, { span });
}

/** Change a graph; what isn't named stays. */
export function edit(id: string, change: Partial<GraphSpec>): void {
	const { graphs } = sheet.value;
	sheet.value = { ...sheet.value, graphs: graphs.map((each) => (each.id === id ? { ...each, ...change } : each)) };
}

/** Put a statistic on the worksheet, at the end or behind a graph; its id, "" where there is no more room. */
export function add(statistic: string, after = ""): string {
	const { graphs } = sheet.value;
	if (graphs.length >= MOST) {
		refused.value = `${MOST} graphs are the most of a worksheet: close one.`;
		return "";
	}
	refused.value = "";
	const spec = graphOf(statistic, unused(graphs));
	const beside = graphs.find((each) => each.id === after);
	const made = beside
		? { ...spec, source: beside.source, width: beside.width, synced: beside.synced, span: beside.span }
		: spec;
	const place = beside ? graphs.indexOf(beside) + 1 : graphs.length;
	sheet.value = { ...sheet.value, graphs: [...graphs.slice(0, place), made, ...graphs.slice(place)] };
	focus.value = made.id;
	return made.id;
}

/** Take a graph from the worksheet. */
export function close(id: string): void {
	const { graphs } = sheet.value;
	const place = graphs.findIndex((each) => each.id === id);
	const left = graphs.filter((each) => each.id !== id);
	sheet.value = { ...sheet.value, graphs: left };
	if (focus.value === id) focus.value = (left[place] ?? left.at(-1))?.id ?? "";
}

/** A graph as it begins. */
export function graphOf(statistic: string, id: string): GraphSpec {
	return {
		id,
		statistic,
		source: "",
		painter: "",
		by: "",
		highlights: [],
		mode: "highlight",
		colour: "rank",
		crop: statistic.endsWith("[latency]") ? 0.001 : 0,
		scale: "",
		rows: null,
		overlays: false,
		panel: "average",
		hierarchy: "",
		width: 2,
		height: USUAL_HEIGHT,
		synced: true,
		span: null,
	};
}

/** The height of a graph that was not resized, in pixels of its canvas; alone on the page it fills the screen. */
export const USUAL_HEIGHT = 260;

function unused(graphs: readonly GraphSpec[]): string {
	const taken = new Set(graphs.map((each) => each.id));
	for (let number = 1; ; number++) if (!taken.has(`g${number}`)) return `g${number}`;
}
