// SPDX-License-Identifier: Apache-2.0
import { type Signal, signal } from "@preact/signals";
import type { GraphSpec } from "../../api/worksheet";

/** A time rests after so many ms without movement. */
const SETTLE = 180;

const motions = new Map<string, { moves: Signal<boolean>; timer: ReturnType<typeof setTimeout> | undefined }>();

/** The motion of a graph's time: synchronized graphs have one time, and so one motion. */
function motionOf({ id, synced }: Pick<GraphSpec, "id" | "synced">) {
	const key = synced ? "" : id;
	const known = motions.get(key) ?? { moves: signal(false), timer: undefined };
	motions.set(key, known);
	return known;
}

/** Whether a graph's time is moved by hand. Meanwhile scales stay as they are, and the layout of the page is not read. */
export const moves = (spec: Pick<GraphSpec, "id" | "synced">): Signal<boolean> => motionOf(spec).moves;

/** A graph's time was moved by hand. */
export function move(spec: Pick<GraphSpec, "id" | "synced">): void {
	const motion = motionOf(spec);
	clearTimeout(motion.timer);
	motion.moves.value = true;
	motion.timer = setTimeout(() => {
		motion.moves.value = false;
	}, SETTLE);
}
