// SPDX-License-Identifier: Apache-2.0
import type { ThemeColours } from "../generated/maps";
import { FONT } from "./frame";
import { countAt, type Scale } from "./scale";
import type { Box } from "./spaces";
import { quantity, thousands, type Unit } from "./ticks";

/** What a map's colours say. `unit`: of what its cells hold. `lines`: names of the overlays that are drawn. `lift`: room kept free at the foot. */
export interface Legend {
	scale: Scale;
	palette: readonly string[];
	signed: boolean;
	unit: Unit;
	lines: readonly string[];
	lift: number;
}

/** Counts where there is no room for all digits: `35K`. */
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 2 });

/** Room next to a plot, in px, below which a legend is small. */
const ROOMY = 60;

/** Height of the name of a line, and of what is below the names except the scale, in px. */
const [LINE, NAMES] = [14, 36];

/** Draw the legend at the right of a plot. */
export function paintLegend(
	context: CanvasRenderingContext2D,
	box: Box,
	colours: ThemeColours,
	{ scale, palette, signed, unit, lines, lift }: Legend,
): void {
	const narrow = context.canvas.width / context.getTransform().a - box.left - box.width < ROOMY;
	const [gap, wide] = narrow ? [6, 8] : [14, 12];
	const x = box.left + box.width + gap;
	const text = x + wide + 5;
	// names of lines are above the scale and its heading
	const free = box.height - Math.max(60, NAMES + lift + LINE * lines.length);
	const tall = Math.max(20, Math.min(120, free));
	const foot = box.top + box.height - 16 - lift;
	for (let i = 0; i < tall; i++) {
		context.fillStyle = palette[Math.floor((i / (tall - 1)) * (palette.length - 1))] ?? colours.text;
		context.fillRect(x, foot - i - 1, wide, 1.2);
	}
	context.font = FONT;
	context.fillStyle = colours.text;
	context.textAlign = "left";
	context.textBaseline = "middle";
	const room = context.canvas.width / context.getTransform().a - text;
	const marks = [0, 0.5, 1].map((place) => {
		const level = signed ? 2 * place - 1 : place;
		return { place, level, words: legendText(scale, level, signed, unit) };
	});
	for (const [number, { place, level, words }] of marks.entries()) {
		// of few counts the middle of the scale may be one of its ends
		if (number === 1 && (words === marks[0]?.words || words === marks[2]?.words)) continue;
		const fits = unit || context.measureText(words).width <= room;
		context.fillText(fits ? words : SHORT.format(Math.round(countAt(scale, level))), text, foot - place * tall);
	}
	context.fillStyle = colours.faint;
	context.textBaseline = "alphabetic";
	context.fillText(scale.kind, x, foot + 14);
	context.fillText(unit ? (signed ? "per s" : "") : `I/Os${signed ? "/s" : ""}`, x, foot - tall - 10);
	for (const [number, name] of lines.entries()) {
		context.fillStyle = colours.lines[number % colours.lines.length] ?? colours.text;
		context.fillText(`${name === "mean" ? "┅" : "━"} ${name}`, x, box.top + 10 + LINE * number);
	}
}

export function legendText(scale: Scale, level: number, signed: boolean, unit: Unit): string {
	if (signed && level === 0) return "0";
	const count = countAt(scale, Math.abs(level));
	if (Number.isNaN(count)) return "";
	const text = unit
		? quantity(count, unit, 3)
		: count < 10 && signed
			? quantity(count, "", 3)
			: thousands(Math.round(count));
	return signed ? `${level > 0 ? "+" : "-"}${text}` : text;
}
