// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { StatisticFacts } from "../src/generated/api";
import { filtered, filtersOf } from "../src/lib/names";
import { completed, onward } from "../src/worksheet/graph/onward";

const entry = (name: string, source: string, stacks: string[], maps: string[], why_not = ""): StatisticFacts => ({
	name,
	about: "",
	covers: "",
	unit: name.endsWith("bytes") ? "B/s" : "1/s",
	source,
	sources: [],
	counted: source === "diskstats" || source === "tcp",
	filters: [],
	breakdowns: [
		...stacks.map((field) => ({ field, kind: "stack" as const })),
		...maps.map((field) => ({ field, kind: "heat" as const })),
	],
	available: why_not === "",
	why_not,
	lacking: [],
});
const block = [
	entry("io.ops", "block", ["op", "device", "process", "pid"], ["latency", "offset"]),
	entry("io.bytes", "block", ["op", "device", "process", "pid"], ["latency", "offset"]),
	entry("io.utilization", "diskstats", ["device"], ["utilization"]),
];
const files = [
	entry("file.ops", "syscall", ["op", "process", "file", "mount", "client"], ["latency"]),
	entry("file.bytes", "syscall", ["op", "process", "file", "mount", "client"], ["latency"]),
];
const all = [...block, ...files];
const statistics = (...asked: Parameters<typeof onward>) => onward(...asked).map((each) => each.statistic);

describe("a value in other sources", () => {
	it("of a process are its files, and of its files its disks", () => {
		expect(statistics("io.ops[process]", "process", "fio", all)).toEqual([
			"file.ops[process=fio][file]",
			"file.ops[process=fio][latency]",
		]);
		expect(statistics("file.ops[process]", "process", "fio", all)).toEqual([
			"io.ops[process=fio][device]",
			"io.ops[process=fio][latency]",
		]);
		expect(statistics("file.ops[process=fio][file]", "file", "/a/b", all)).toEqual(["io.ops[process=fio][device]"]);
		expect(statistics("file.ops[file]", "file", "/dev/nvme0n1", all)).toEqual(["io.ops[device=nvme0n1][latency]"]);
	});
	it("keeps throughput, the operation and names, but no latency or offset of another layer", () => {
		expect(statistics("io.bytes[op=write][latency>=1ms][process]", "process", "a,b", all)).toEqual([
			'file.bytes[op=write][process="a,b"][file]',
			'file.ops[op=write][process="a,b"][latency]',
		]);
		expect(statistics("io.ops[op=flush][process]", "process", "a", all)[0]).toBe("file.ops[process=a][file]");
	});
	it("asks for the processes of a file before their disks", () => {
		const [step] = onward("file.ops[latency]", "file", 'x"]y', all);
		expect(step?.first?.statistic).toBe('file.ops[file="x\\"]y"][process]');
		expect(step && completed(step, ["fio", "a,b"])).toBe('io.ops[process=fio,"a,b"][device]');
	});
	it("of a disk are what uses it and how busy it is", () => {
		expect(statistics("io.ops[device]", "device", "sda", all)).toEqual(["io.utilization[device=sda]"]);
		expect(statistics("io.utilization[device]", "device", "sda", all)).toEqual([
			"io.ops[device=sda][latency]",
			"io.ops[device=sda][process]",
		]);
	});
	it("of a client are its files on each kind of server", () => {
		const nfs = [entry("nfs.ops", "nfs", ["client", "file"], []), entry("ip.bytes", "tcp", ["peer", "direction"], [])];
		expect(statistics("ip.bytes[peer]", "peer", "10.0.0.7", [...nfs, ...files])).toEqual([
			"nfs.ops[client=10.0.0.7][file]",
			"file.bytes[client=10.0.0.7][file]",
		]);
		expect(statistics("nfs.ops[client]", "client", "10.0.0.7", nfs)).toEqual(["ip.bytes[peer=10.0.0.7][direction]"]);
	});
	it("says why where nothing recorded answers it, and is silent about the same events", () => {
		const without = [...block, entry("file.ops", "", [], [], "no system calls were recorded")];
		expect(onward("io.ops[process]", "process", "fio", without)).toEqual([
			{ words: "its files", statistic: "", hint: "no system calls were recorded" },
			{ words: "its system calls by latency", statistic: "", hint: "no system calls were recorded" },
		]);
		const same = [entry("io.ops", "syscall", ["process", "file"], ["latency"]), ...files];
		expect(onward("io.ops[process]", "process", "fio", same)).toEqual([]);
		expect(onward("io.ops[latency]", "latency", "1", all)).toEqual([]);
	});
});

describe("the conditions of a statistic", () => {
	it("are found whatever is in a name", () => {
		fc.assert(
			fc.property(fc.string(), (value) => {
				const found = filtersOf(filtered("io.ops[op=read][latency]", "file", value));
				expect(found.map((each) => each.field)).toEqual(["op", "file"]);
			}),
		);
		expect(filtersOf("io.ops[latency=1ms..2ms][size>=4KiB][process!=fio][op]").map((each) => each.text)).toEqual([
			"latency=1ms..2ms",
			"size>=4KiB",
			"process!=fio",
		]);
	});
});
