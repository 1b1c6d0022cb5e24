// SPDX-License-Identifier: Apache-2.0
import { file } from "../../api/client";
import { answerOf, wordsOf } from "../../api/feed";
import { Refusal } from "../../api/question";
import { TOP } from "../../api/stream-params";
import { catalogue, type GraphSpec, refused, sheet, spanOf, whole } from "../../api/worksheet";
import { messageOf } from "../../lib/errors";
import { fileName, offer } from "../../lib/files";
import { sourcesOf } from "../graph/drill";
import { type Item, stateOf } from "../graph/state";
import { spanWords } from "../times";

/** A refused request. */
const USAGE = 400;

/** A graph's numbers, as `iolab query --format csv` prints them; of too many values those that the graph names, which is said. */
export async function exportCsv(spec: GraphSpec): Promise<void> {
	const { recording, statistic, source, from, to, interval } = wordsOf(spec);
	const words = { recording, statistic, source, from, to, interval };
	const answer = answerOf(spec).peek();
	const others = answer?.kind === "stack" ? answer.others : null;
	try {
		const content = await file("export", words).catch(async (error: unknown) => {
			if (!(error instanceof Refusal) || error.status !== USAGE || !others) throw error;
			const fewer = await file("export", { ...words, top: TOP });
			refused.value = `The file names ${TOP} values and adds up the ${others.keys} others: all would be too many numbers.`;
			return fewer;
		});
		offer(fileName(`${sheet.value.recording}-${spec.statistic}`, "csv"), content);
	} catch (error) {
		refused.value = messageOf(error);
	}
}

const MARGIN = 12;
/** Room above a picture for its name, and the height of a line of what is said above and below it. */
const NAME = 24;
const LINE = 16;
/** The list of colours next to a picture: its width, and the height of a line. */
const LIST = { wide: 240, line: 18 };

/** What a picture has to say in words: the values that have a colour; a single one is named above. */
export function keyed(items: readonly Item[]): Item[] {
	const coloured = items.filter((item) => item.colour !== "");
	return coloured.length > 1 ? coloured : [];
}

/** Text that fits in a width, its beginning left out: of a path the last part says the most. */
export function fitting(text: string, width: number, measure: (text: string) => number): string {
	if (measure(text) <= width) return text;
	for (let from = 1; from < text.length; from++) {
		const short = `…${text.slice(from)}`;
		if (measure(short) <= width) return short;
	}
	return "…";
}

/** Text in lines that fit in a width, broken between words. */
export function wrapped(text: string, width: number, measure: (text: string) => number): string[] {
	const lines: string[] = [];
	for (const word of text.split(" ").filter(Boolean)) {
		const longer = `${lines.at(-1) ?? ""} ${word}`;
		if (lines.length > 0 && measure(longer) <= width) lines[lines.length - 1] = longer;
		else lines.push(word);
	}
	return lines;
}

/** A graph's pictures as one: above its name, source and time, at the side what its colours mean, below its notes. */
export function exportPng(home: HTMLElement, spec: GraphSpec): void {
	const canvases = [...home.querySelectorAll("canvas")].filter((each) => each.width > 0 && each.offsetParent !== null);
	const ratio = devicePixelRatio;
	const style = getComputedStyle(document.documentElement);
	const picture = document.createElement("canvas");
	const context = picture.getContext("2d");
	if (!context || canvases.length === 0) return;
	const frame = home.getBoundingClientRect();
	const boxes = canvases.map((each) => each.getBoundingClientRect());
	const [left, top] = [Math.min(...boxes.map((box) => box.left)), Math.min(...boxes.map((box) => box.top))];
	const right = Math.max(...boxes.map((box) => box.right));
	const bottom = Math.max(...boxes.map((box) => box.bottom));
	const list = keyed(stateOf(spec.id).items.peek());
	const width = Math.min(frame.width, right - left + 2 * MARGIN);
	const height = Math.max(bottom - top, list.length * LIST.line);
	const said = [...home.querySelectorAll("[data-words]")].map((each) => each.textContent?.trim() ?? "");
	context.font = `12px ${style.fontFamily}`;
	const measure = (text: string) => context.measureText(text).width;
	const below = said.flatMap((each) => wrapped(each, width - 2 * MARGIN, measure));
	const source = spec.source || (sourcesOf(spec.statistic, catalogue.value)[0]?.name ?? "");
	const origin = [sheet.value.recording, source && `from ${source}`, spanWords(spanOf(spec), whole.value.from)];
	const above = wrapped(origin.filter(Boolean).join(", "), width - 2 * MARGIN, measure);
	const title = NAME + above.length * LINE + 4;
	picture.width = Math.round((width + (list.length > 0 ? LIST.wide + MARGIN : 0)) * ratio);
	picture.height = Math.round((height + title + 2 * MARGIN + below.length * LINE) * ratio);
	context.scale(ratio, ratio);
	context.fillStyle = style.getPropertyValue("--paper") || "#ffffff";
	context.fillRect(0, 0, picture.width, picture.height);
	context.fillStyle = style.getPropertyValue("--text") || "#000000";
	context.textBaseline = "top";
	context.font = `600 14px ${style.fontFamily}`;
	context.fillText(fitting(spec.statistic, width - 2 * MARGIN, measure), MARGIN, MARGIN);
	context.font = `12px ${style.fontFamily}`;
	for (const [i, line] of above.entries()) context.fillText(line, MARGIN, NAME + MARGIN / 2 + i * LINE);
	for (const [i, line] of below.entries())
		context.fillText(line, MARGIN, title + MARGIN + height + MARGIN / 2 + i * LINE);
	for (const [i, canvas] of canvases.entries()) {
		const box = boxes[i];
		if (box) context.drawImage(canvas, box.left - left + MARGIN, box.top - top + title + MARGIN, box.width, box.height);
	}
	paintList(context, list, width, title + MARGIN);
	picture.toBlob(
		(content) => content && offer(fileName(`${sheet.value.recording}-${spec.statistic}`, "png"), content),
		"image/png",
	);
}

/** Colours with their meanings, one below the other. */
function paintList(context: CanvasRenderingContext2D, list: readonly Item[], left: number, top: number): void {
	const ink = context.fillStyle;
	const measure = (text: string) => context.measureText(text).width;
	for (const [i, item] of list.entries()) {
		const y = top + i * LIST.line;
		context.fillStyle = item.colour;
		context.fillRect(left, y + 2, 10, 10);
		context.fillStyle = ink;
		const room = LIST.wide - 16 - measure(item.words) - 12;
		context.fillText(fitting(item.key, room, measure), left + 16, y);
		context.fillText(item.words, left + LIST.wide - measure(item.words), y);
	}
}
