// SPDX-License-Identifier: Apache-2.0
import { breakdownOf, filtersOf, rootOf, visible } from "./names";

const GROUPS: Record<string, string> = {
	io: "Disk",
	file: "Files",
	nfs: "NFS server",
	"nfs.client": "NFS mounts",
	smb: "SMB server",
	"smb.client": "SMB mounts",
	app: "Application",
	cpu: "CPU",
	memory: "Memory",
	vm: "Virtual memory",
	net: "Network",
	ip: "TCP",
	fs: "File systems",
	arc: "ARC",
	l2arc: "L2ARC",
	zpool: "ZFS disks",
	txg: "ZFS transaction groups",
	zil: "ZFS intent log",
};

/** What is measured, by the whole name or by its last part. */
const MEASURES: Record<string, string> = {
	"io.ops": "I/O operations",
	"file.ops": "system calls",
	"smb.ops": "system calls",
	"app.ops": "I/O operations",
	"memory.bytes": "in use",
	"fs.capacity": "used space",
	"zpool.sizes": "I/O operations",
	"zpool.ops": "I/O operations",
	ops: "operations",
	bytes: "throughput",
	queue: "queue depth",
	link: "link speed",
};

const FIELDS: Record<string, string> = { op: "operation", device: "disk", error: "error code" };

/** What a group of statistics is about. */
export const groupTitle = (group: string): string => GROUPS[group] ?? group;

/** What a field is called. To OpenZFS a disk is a vdev too; of the block layer's I/O a vdev is what a disk is a part of. */
export const fieldTitle = (field: string, group = ""): string =>
	FIELDS[field] ?? (field === "vdev" && group === "zpool" ? "disk" : field.replaceAll("_", " "));

/** A statistic in plain words: "Disk: I/O operations by latency (process fio)". */
export function titleOf(statistic: string): string {
	const root = rootOf(statistic);
	const cut = root.lastIndexOf(".");
	const [group, name] = [root.slice(0, Math.max(0, cut)), root.slice(cut + 1)];
	const field = breakdownOf(statistic);
	const filters = filtersOf(statistic).map(({ text }) =>
		text.replace(/^([a-z_]+)=/, (_, of) => `${fieldTitle(of, group)} `),
	);
	const words = [
		`${groupTitle(group)}: ${MEASURES[root] ?? MEASURES[name] ?? name.replaceAll("_", " ")}`,
		field && ` by ${fieldTitle(field, group)}`,
		filters.length > 0 && ` (${filters.join(", ")})`,
	];
	return visible(words.filter(Boolean).join(""));
}
