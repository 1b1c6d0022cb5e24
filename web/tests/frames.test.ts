// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { beforeNextFrame, claimPaint } from "../src/canvas/frames";

let waiting: FrameRequestCallback[] = [];

function nextFrame(): void {
	for (const act of waiting.splice(0)) act(0);
}

beforeEach(() => {
	waiting = [];
	vi.stubGlobal("requestAnimationFrame", (act: FrameRequestCallback) => waiting.push(act));
});
afterEach(() => vi.unstubAllGlobals());

describe("frames", () => {
	it("let one caller a frame paint what takes long, and the others later", () => {
		const painted: [number, string][] = [];
		let frame = 0;
		const painter = (name: string) => {
			const draw = () => {
				if (claimPaint()) painted.push([frame, name]);
				else beforeNextFrame(draw);
			};
			return draw;
		};
		for (const name of ["a", "b", "c"]) beforeNextFrame(painter(name));
		for (frame = 1; frame <= 4; frame++) nextFrame();
		expect(painted).toEqual([
			[1, "a"],
			[2, "b"],
			[3, "c"],
		]);
		expect(waiting).toEqual([]);
	});
});
