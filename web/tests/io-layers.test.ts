// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { IoLayers, SingleIo } from "../src/generated/api";
import { aboutIo, domainOf, rowsOf } from "../src/worksheet/graph/io-time-line";

const io = (more: Partial<SingleIo>): SingleIo => ({
	id: "",
	source: "block",
	time_ns: 0,
	latency_ns: 100,
	queue_ns: null,
	offset_bytes: null,
	size_bytes: null,
	op: "write",
	device: null,
	process: null,
	file: null,
	mount: null,
	client: null,
	job: null,
	pid: null,
	thread: null,
	error: null,
	flags: null,
	count: 1,
	...more,
});

const layers: IoLayers = {
	schema: 1,
	recording: "rec",
	io: io({ queue_ns: 40, latency_ns: 10_000 }),
	above: [{ io: io({ source: "syscall" }), match: "thread", start_ns: -2000, end_ns: 12_000 }],
	below: [{ io: io({}), match: "time", start_ns: -9e9, end_ns: 9e9 }],
	above_left: 0,
	below_left: 0,
	elsewhere: 0,
	layers: ["syscall", "block"],
	notes: [],
};

describe("one I/O through the layers", () => {
	it("is drawn from the top layer down, on the time of what is tied to it", () => {
		const rows = rowsOf(layers);
		expect(rows.map((row) => [row.match, row.start, row.end])).toEqual([
			["thread", -2000, 12_000],
			["self", 0, 10_000],
			["time", -9e9, 9e9],
		]);
		const { from, until } = domainOf(rows);
		expect(from).toBeLessThan(-2000);
		expect(from).toBeGreaterThan(-4000);
		expect(until).toBeLessThan(14_000);
	});

	it("is named by what is known", () => {
		expect(aboutIo(io({}))).toBe("write");
		const call = { source: "syscall", flags: "pread64", size_bytes: 8192, offset_bytes: 0, file: "/a\u202eb" };
		expect(aboutIo(io({ ...call, process: "fio", pid: 5, thread: 6 }))).not.toContain("\u202e");
		expect(aboutIo(io({ ...call, file: "/a", process: "fio", pid: 5, thread: 6 }))).toBe(
			"pread64 8 KiB at 0 B of /a by fio 5/6",
		);
	});
});
