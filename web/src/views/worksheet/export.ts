import { file } from "../../model/ask";
import { wordsOf } from "../../model/feed";
import { fileName, offer } from "../../model/files";
import { spanWords } from "../../model/times";
import { type GraphSpec, refused, sheet, spanOf, whole } from "../../model/worksheet";

/** A graph's numbers, as `iolab query --format csv` prints them. */
export async function exportCsv(spec: GraphSpec): Promise<void> {
	const { recording, statistic, source, from, to, interval } = wordsOf(spec);
	try {
		const content = await file("export", { recording, statistic, source, from, to, interval });
		offer(fileName(`${sheet.value.recording}-${spec.statistic}`, "csv"), content);
	} catch (error) {
		refused.value = error instanceof Error ? error.message : String(error);
	}
}

const MARGIN = 12;
const TITLE = 34;

/** A graph's pictures as one, with its name and time above. */
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
	picture.width = Math.round(Math.min(frame.width, right - left + 2 * MARGIN) * ratio);
	picture.height = Math.round((bottom - top + TITLE + 2 * MARGIN) * ratio);
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
	picture.toBlob(
		(content) => content && offer(fileName(`${sheet.value.recording}-${spec.statistic}`, "png"), content),
		"image/png",
	);
}
