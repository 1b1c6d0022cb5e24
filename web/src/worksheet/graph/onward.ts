// SPDX-License-Identifier: Apache-2.0
import type { StatisticFacts } from "../../generated/api";
import { type Filter, filtered, filtersOf, rootOf } from "../../lib/names";
import { entryOf } from "./drill";

/** A question about the same value that another layer or source answers. */
export interface Onward {
	words: string;
	/** The statistic to add; "" where nothing recorded answers it. */
	statistic: string;
	/** Which source answers it, or why nothing does. */
	hint: string;
	/** Asked first: the statistic takes the values of `field` in the answer as its filter. */
	first?: { statistic: string; field: string };
}

interface Target {
	words: string;
	/** Its name without filters; for throughput the same of `.bytes`, where there is one. */
	name: string;
	by: string;
	/** The field that takes the value. */
	field: string;
}

const target = (words: string, name: string, by: string, field: string): Target => ({ words, name, by, field });

const OF_PROCESS = (field: string): Target[] => [
	target("its files", "file.ops", "file", field),
	target("its system calls by latency", "file.ops", "latency", field),
	target("its disks", "io.ops", "device", field),
	target("its block I/O by latency", "io.ops", "latency", field),
];
const OF_CLIENT: Target[] = [
	target("its files on the NFS server", "nfs.ops", "file", "client"),
	target("its files on the Samba server", "file.ops", "file", "client"),
	target("its network traffic", "ip.bytes", "direction", "peer"),
];

/** What other layers say about a value of a field. */
const TARGETS: Record<string, Target[]> = {
	process: OF_PROCESS("process"),
	pid: OF_PROCESS("pid"),
	thread: OF_PROCESS("thread"),
	device: [
		target("its I/O by latency", "io.ops", "latency", "device"),
		target("its processes", "io.ops", "process", "device"),
		target("its utilization", "io.utilization", "", "device"),
		target("its queue depth", "io.queue", "", "device"),
	],
	client: OF_CLIENT,
	peer: OF_CLIENT,
	server: [target("its network traffic", "ip.bytes", "direction", "peer")],
	mount: [
		target("its files", "file.ops", "file", "mount"),
		target("its system calls by latency", "file.ops", "latency", "mount"),
		target("its used space", "fs.capacity", "", "mount"),
		target("its NFS operations", "nfs.client.ops", "procedure", "mount"),
		target("its NFS latency", "nfs.client.latency", "phase", "mount"),
	],
	pool: [
		target("its disks by latency", "zpool.ops", "latency", "pool"),
		target("its transaction groups", "txg.time", "phase", "pool"),
	],
};

/** Filters that mean the same in every layer. A latency or an offset of a system call is not one of a block I/O. */
const SHARED = new Set(["process", "pid", "thread", "device", "client", "mount", "file"]);

/** Questions about a value that another layer answers; those that nothing recorded can answer say why. */
export function onward(
	statistic: string,
	field: string,
	value: string,
	catalogue: readonly StatisticFacts[],
): Onward[] {
	const here = entryOf(statistic, catalogue);
	const filters = filtersOf(statistic);
	const ask = (each: Target, values: readonly string[], carried: readonly Filter[] = filters): Onward[] => {
		const name = throughputOf(each, statistic, catalogue);
		if (familyOf(name) === familyOf(rootOf(statistic))) return [];
		const entry = catalogue.find((one) => one.name === name);
		if (!entry) return [];
		const why = lacks(entry, each.field, each.by);
		// the same events under another name say nothing new
		if (!why && here && entry.source === here.source && !entry.counted) return [];
		if (why) return [{ words: each.words, statistic: "", hint: why }];
		const kept = carried.filter((one) => one.field !== each.field && carries(one, entry, each.by));
		const base = `${name}${kept.map((one) => `[${one.text}]`).join("")}${each.by && `[${each.by}]`}`;
		const narrowed = values.length > 0 ? filtered(base, each.field, ...values) : base;
		return [{ words: each.words, statistic: narrowed, hint: entry.source }];
	};
	if (field === "file") return disksOf(statistic, value, filters, ask);
	return (TARGETS[field] ?? []).flatMap((each) => ask(each, [value]));
}

/** The disks of a file: a device itself, or those of its processes, since block I/O has no file. */
function disksOf(
	statistic: string,
	file: string,
	filters: readonly Filter[],
	ask: (each: Target, values: readonly string[], carried?: readonly Filter[]) => Onward[],
): Onward[] {
	const device = /^\/dev\/(?:mapper\/)?([\w.-]+)$/.exec(file)?.[1];
	if (device) return ask(target("the disk by latency", "io.ops", "latency", "device"), [device], []);
	const process = filters.find((each) => each.field === "process");
	if (process) return ask(target("the disks of its process", "io.ops", "device", ""), [], [process]);
	const first = { statistic: `${filtered(rootOf(statistic), "file", file)}[process]`, field: "process" };
	const disks = ask(target("the disks of its processes", "io.ops", "device", "process"), [], []);
	return disks.map((each) => (each.statistic ? { ...each, first } : each));
}

/** The statistic to add once the values that it is held to are known. */
export const completed = ({ statistic, first }: Onward, values: readonly string[]): string =>
	first ? filtered(statistic, first.field, ...values) : statistic;

/** Of throughput the throughput, where it is broken down by names. */
function throughputOf({ name, by }: Target, statistic: string, catalogue: readonly StatisticFacts[]): string {
	const bytes = name.replace(/\.ops$/, ".bytes");
	const entry = catalogue.find((each) => each.name === bytes);
	const stacked = entry?.breakdowns.some((each) => each.field === by && each.kind === "stack") ?? false;
	return rootOf(statistic).endsWith(".bytes") && stacked ? bytes : name;
}

const familyOf = (name: string): string => name.replace(/\.bytes$/, ".ops");

/** Why a statistic can't be restricted to a field and broken down by another; "" if it can. */
function lacks(entry: StatisticFacts, field: string, by: string): string {
	if (!entry.available) return entry.why_not;
	const reason = (wanted: string) =>
		wanted === "" || entry.breakdowns.some((each) => each.field === wanted)
			? ""
			: (entry.lacking.find((each) => each.field === wanted)?.why_not ?? `${entry.name} has no ${wanted} here`);
	return reason(field) || reason(by);
}

const carries = ({ field, text }: Filter, entry: StatisticFacts, by: string): boolean =>
	(SHARED.has(field) || text === "op=read" || text === "op=write") &&
	field !== by &&
	entry.breakdowns.some((each) => each.field === field);
