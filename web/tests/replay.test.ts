// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ahead, recordings, sheet, time } from "../src/api/worksheet";
import {
	changeSpeed,
	closeReplay,
	played,
	playOrPause,
	position,
	replay,
	seek,
	toggleReplay,
} from "../src/worksheet/replay";

const S = 1e9;
let frames: FrameRequestCallback[] = [];

beforeEach(() => {
	frames = [];
	vi.stubGlobal("requestAnimationFrame", (act: FrameRequestCallback) => frames.push(act));
	vi.stubGlobal("cancelAnimationFrame", () => {
		frames = [];
	});
	vi.spyOn(performance, "now").mockReturnValue(0);
	recordings.value = [
		{
			name: "rec",
			kind: "recording",
			host: "",
			clock: "trace",
			live: false,
			first_ns: 0,
			last_ns: 100 * S - 1,
			events: {},
			events_from_ns: 0,
			samples: {},
			hosts: {},
			problem: "",
		},
	];
	sheet.value = { ...sheet.value, recording: "rec", time: { from: 10 * S, until: 20 * S } };
});

afterEach(() => {
	closeReplay();
	vi.unstubAllGlobals();
	vi.restoreAllMocks();
});

const frame = (at: number) => {
	const [act] = frames.splice(0);
	act?.(at);
};

describe("a window that is played", () => {
	it("moves by real time times the speed, and ends with the recording", () => {
		expect(played({ from: 0, until: 10 }, 100, 20, 1e12)).toEqual({ from: 2 * S, until: 2 * S + 10 });
		expect(played({ from: 0, until: 10 }, 100, 20, 15)).toEqual({ from: 5, until: 15 });
		// a page that was hidden for a minute does not jump
		expect(played({ from: 0, until: 10 }, 60_000, 1, 1e12).from).toBe(0.25 * S);
	});

	it("plays, pauses, and goes on at another speed", () => {
		toggleReplay();
		changeSpeed(1);
		expect(replay.value).toEqual({ speed: 2, playing: false });
		playOrPause();
		expect(ahead.value).toBe(4 * S);
		frame(100);
		expect(time.value).toEqual({ from: 10.2 * S, until: 20.2 * S });
		changeSpeed(1);
		frame(200);
		expect(time.value.from).toBe(10.7 * S);
		playOrPause();
		expect(ahead.value).toBe(0);
		frame(300);
		expect(time.value.from).toBe(10.7 * S);
	});

	it("stops at the end, and begins anew from there", () => {
		toggleReplay();
		seek(1);
		expect([time.value, position.value]).toEqual([{ from: 90 * S, until: 100 * S }, 1]);
		playOrPause();
		expect(time.value).toEqual({ from: 0, until: 10 * S });
		seek(0.9999);
		for (const at of [100, 200, 300]) frame(at);
		expect(replay.value?.playing).toBe(false);
		expect(time.value.until).toBe(100 * S);
	});

	it("ends when the user follows what is recorded", () => {
		toggleReplay();
		playOrPause();
		sheet.value = { ...sheet.value, time: { live: 60 } };
		frame(100);
		expect(replay.value?.playing).toBe(false);
	});
});
