// SPDX-License-Identifier: Apache-2.0
import type { ThemeColours } from "../generated/maps";
import type { Content } from "./content";
import type { Box, Span } from "./spaces";

/** A plate reaches so far beyond what is shown, in lengths of it, on either side. */
const BEYOND = 0.5;

/**
 * The picture of a content, wider than its visible part: while a graph is dragged, the same picture is drawn at another position, and
 * nothing is painted again until its end is reached.
 */
export class Plate {
	readonly #canvas = document.createElement("canvas");
	#key: unknown[] = [];
	#from = 0;
	#to = 0;

	/** Draw the content at its position; `version` distinguishes the states of a content. */
	draw(
		context: CanvasRenderingContext2D,
		content: Content,
		version: number,
		place: { box: Box; span: Span; ratio: number; colours: ThemeColours },
	): void {
		const { box, span, ratio, colours } = place;
		const scale = box.width / (span.to - span.from);
		const key = [content, version, box.width, box.height, ratio, colours, scale];
		const same = key.every((each, i) =>
			i === 6 ? near(each as number, this.#key[i] as number) : each === this.#key[i],
		);
		if (!same || span.from < this.#from || span.to > this.#to) {
			this.#key = key;
			this.#paint(content, place);
		}
		const offset = Math.round((span.from - this.#from) * scale * ratio);
		const width = Math.round(box.width * ratio);
		const height = Math.round(box.height * ratio);
		context.imageSmoothingEnabled = false;
		context.drawImage(this.#canvas, offset, 0, width, height, box.left, box.top, width / ratio, height / ratio);
	}

	#paint(
		content: Content,
		{ box, span, ratio, colours }: { box: Box; span: Span; ratio: number; colours: ThemeColours },
	) {
		const beyond = Math.round(BEYOND * box.width);
		const wide = box.width + 2 * beyond;
		const time = ((span.to - span.from) * beyond) / box.width;
		this.#from = span.from - time;
		this.#to = span.to + time;
		this.#canvas.width = Math.round(wide * ratio);
		this.#canvas.height = Math.round(box.height * ratio);
		const context = this.#canvas.getContext("2d");
		if (!context) return;
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		const frame = {
			box: { left: 0, top: 0, width: wide, height: box.height },
			span: { from: this.#from, to: this.#to },
			colours,
		};
		content.paint(context, frame, ratio, span);
	}
}

/** Equal but for what is lost in rounding times. */
const near = (one: number, other: number) => Math.abs(one - other) <= 1e-6 * Math.abs(one);
