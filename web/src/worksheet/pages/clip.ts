// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import { sheet, time, whole } from "../../api/worksheet";
import { fileName, offer } from "../../lib/files";
import { titleOf } from "../../lib/titles";
import { playOrPause, replay, stop } from "../replay";
import { spanWords } from "../times";

const TYPES = ["video/webm;codecs=vp9", "video/webm;codecs=vp8", "video/webm"];
const PER_SECOND = 30;
/** A clip ends after so many ms. */
const LONGEST = 120_000;
const MARGIN = 16;
const TITLE = 26;
const HEAD = 34;

/** Whether a clip is being recorded. */
export const recordingClip = signal(false);

const typeOf = () =>
	typeof MediaRecorder === "undefined" ? undefined : TYPES.find((type) => MediaRecorder.isTypeSupported(type));

/** Whether this browser can make clips. */
export const makesClips = (): boolean => typeOf() !== undefined;

let end = () => {};

/** Play, and record the graphs as a WebM clip until the replay ends, is paused, or this is called again. */
export function toggleClip(): void {
	if (recordingClip.peek()) {
		end();
		return;
	}
	const mimeType = typeOf();
	const canvases = shownCanvases();
	const picture = document.createElement("canvas");
	const context = picture.getContext("2d");
	if (!mimeType || !context || canvases.length === 0) return;
	const width = Math.max(...canvases.map(({ canvas }) => canvas.clientWidth)) + 2 * MARGIN;
	const high = canvases.reduce((sum, { canvas }) => sum + canvas.clientHeight + TITLE, HEAD + MARGIN);
	// encoders want even numbers
	Object.assign(picture, { width: 2 * Math.ceil(width / 2), height: 2 * Math.ceil(high / 2) });
	const recorder = new MediaRecorder(picture.captureStream(PER_SECOND), { mimeType, videoBitsPerSecond: 6e6 });
	const parts: Blob[] = [];
	recorder.ondataavailable = (event) => parts.push(event.data);
	recorder.onstop = () => {
		recordingClip.value = false;
		if (parts.length > 0)
			offer(fileName(`${sheet.peek().recording}-replay`, "webm"), new Blob(parts, { type: "video/webm" }));
	};
	let next = 0;
	const begun = performance.now();
	end = () => {
		cancelAnimationFrame(next);
		stop();
		if (recorder.state !== "inactive") recorder.stop();
	};
	const draw = (now: number) => {
		paint(context, picture);
		// a clip ends with the replay, and shows its last picture
		if (!replay.peek()?.playing || now - begun > LONGEST) {
			end();
			return;
		}
		next = requestAnimationFrame(draw);
	};
	if (!replay.peek()?.playing) playOrPause();
	recordingClip.value = true;
	paint(context, picture);
	recorder.start(1000);
	next = requestAnimationFrame(draw);
}

/** The plots of the page from the top down. */
function shownCanvases(): { canvas: HTMLCanvasElement; statistic: string }[] {
	return [...document.querySelectorAll<HTMLElement>("section[data-graph]")].flatMap((section) => {
		const canvas = section.querySelector<HTMLCanvasElement>(".plot canvas");
		return canvas && canvas.width > 0 ? [{ canvas, statistic: section.dataset.statistic ?? "" }] : [];
	});
}

function paint(context: CanvasRenderingContext2D, picture: HTMLCanvasElement): void {
	const style = getComputedStyle(document.documentElement);
	context.fillStyle = style.getPropertyValue("--paper") || "#ffffff";
	context.fillRect(0, 0, picture.width, picture.height);
	context.fillStyle = style.getPropertyValue("--text") || "#000000";
	context.textBaseline = "middle";
	const family = getComputedStyle(document.body).fontFamily;
	context.font = `14px ${family}`;
	const speed = replay.peek()?.speed ?? 1;
	const words = `${sheet.peek().recording} · ${spanWords(time.peek(), whole.peek().from)} · ×${speed}`;
	context.fillText(words, MARGIN, HEAD / 2);
	context.font = `600 14px ${family}`;
	let top = HEAD;
	for (const { canvas, statistic } of shownCanvases()) {
		context.fillText(titleOf(statistic), MARGIN, top + TITLE / 2);
		top += TITLE;
		context.drawImage(canvas, MARGIN, top, canvas.clientWidth, canvas.clientHeight);
		top += canvas.clientHeight;
	}
}
