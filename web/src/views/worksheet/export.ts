import { file } from "../../model/ask";
import { messageOf } from "../../model/errors";
import { wordsOf } from "../../model/feed";
import { fileName, offer } from "../../model/files";
import { spanWords } from "../../model/times";
import { type GraphSpec, refused, sheet, spanOf, whole } from "../../model/worksheet";
import { type Item, stateOf } from "../graph/state";

/** A graph's numbers, as `iolab query --format csv` prints them. */
export async function exportCsv(spec: GraphSpec): Promise<void> {
	const { recording, statistic, source, from, to, interval } = wordsOf(spec);
	try {
		const content = await file("export", { recording, statistic, source, from, to, interval });
		offer(fileName(`${sheet.value.recording}-${spec.statistic}`, "csv"), content);
	} catch (error) {
		refused.value = messageOf(error);
	}
}

const MARGIN = 12;
const TITLE = 34;
/** The list of colours beside a picture: its width, and the height of a line. */
const LIST = { wide: 240, line: 18 };

/** What a picture has to say in words: the values that are told apart by colour; a single one is named above. */
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

/** A graph's pictures as one, with its name and time above, and what its colours mean beside them. */
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
	picture.width = Math.round((width + (list.length > 0 ? LIST.wide + MARGIN : 0)) * ratio);
	picture.height = Math.round((height + TITLE + 2 * MARGIN) * ratio);
	context.scale(ratio, ratio);
	context.fillStyle = style.getPropertyValue("--paper") || "#ffffff";
	context.fillRect(0, 0, picture.width, picture.height);
	context.fillStyle = style.getPropertyValue("--text") || "#000000";
	context.textBaseline = "top";
	context.font = `600 14px ${style.fontFamily}`;
	context.fillText(spec.statistic, MARGIN, MARGIN);
	const name = context.measureText(spec.statistic).width;
	context.font = `12px ${style.fontFamily}`;
	context.fillText(
		`${sheet.value.recording}, ${spanWords(spanOf(spec), whole.value.from)}`,
		MARGIN + name + 14,
		MARGIN + 2,
	);
	for (const [i, canvas] of canvases.entries()) {
		const box = boxes[i];
		if (box) context.drawImage(canvas, box.left - left + MARGIN, box.top - top + TITLE + MARGIN, box.width, box.height);
	}
	paintList(context, list, width, TITLE + MARGIN);
	picture.toBlob(
		(content) => content && offer(fileName(`${sheet.value.recording}-${spec.statistic}`, "png"), content),
		"image/png",
	);
}

/** Colours with what they stand for, one below the other. */
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
