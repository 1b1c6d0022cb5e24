// SPDX-License-Identifier: Apache-2.0
import type { LossesOfKind, ThemeColours } from "../generated/maps";
import type { Cells } from "./cells";
import type { Frame } from "./frame";
import type { Axis, Box, Span } from "./spaces";
import type { Tick } from "./ticks";
import type { Coloured } from "./tooltip";

/** Names with their values, as a tooltip shows them. */
export type Words = Record<string, string | Coloured>;

/**
 * What a graph over time shows: the graph has the axis of time, gaps, losses and gestures; a content has its values. Times are
 * ns since `origin`, which is ns on the recording's clock.
 */
export interface Content {
	readonly origin: number;
	readonly interval: number;
	readonly columns: number;
	/** The span of the answer, null where that is not known: outside of it nothing is known yet. */
	readonly answered: Readonly<[number, number]> | null;
	/** Spans in which nothing was recorded: of two times that are compared, of one of them. */
	readonly hatched: readonly Readonly<[number, number]>[];
	readonly compared: boolean;
	/** Spans without any I/O though some was expected. */
	readonly idle: readonly Readonly<[number, number]>[];
	/** What was lost, by kind and column. */
	readonly lost: readonly LossesOfKind[];
	/** The cells that were painted last, null where there are none: a mark is grown to whole ones. */
	readonly cells: Cells | null;
	/** The vertical axis as it is painted. */
	readonly axis: Axis;
	/** Make axis and scales for the part that is shown; whether anything is painted otherwise than before. */
	settle(shown: Span, box: Box): boolean;
	/** Marks on the vertical axis of a plot of a height. */
	ticks(height: number): Tick[];
	/** Paint all content of the frame, which may be wider than what is shown. `ratio`: pixels of the screen in one of the canvas. */
	paint(context: CanvasRenderingContext2D, frame: Frame, ratio: number, shown: Span): void;
	/** Paint what the colours mean, right of the plot. */
	legend(context: CanvasRenderingContext2D, box: Box, colours: ThemeColours): void;
	/** What is at a time and value; null for nothing. */
	at(time: number, value: number): Words | null;
}
