// SPDX-License-Identifier: Apache-2.0
/**
 * Arrows in an icicle move to the adjacent slice, to its parent and to its first child. `up`: the offset of the parent's row: -1 if
 * callers are above their callees, 1 if they are below.
 */
export function walk(event: KeyboardEvent, up = -1): void {
	const here = (event.target as HTMLElement).closest<HTMLElement>(".place");
	const all = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>(".place")];
	if (!here || !event.key.startsWith("Arrow")) return;
	event.preventDefault();
	event.stopPropagation();
	const box = (each: HTMLElement) => each.getBoundingClientRect();
	const row = (each: HTMLElement) => Number(each.dataset.depth);
	const level = row(here) + ({ ArrowUp: up, ArrowDown: -up }[event.key] ?? 0);
	const near = all.filter((each) => row(each) === level);
	const beside = near[near.indexOf(here) + (event.key === "ArrowLeft" ? -1 : 1)];
	const over = near.find((each) => box(each).right > box(here).left + 1 && box(each).left < box(here).right - 1);
	(level === row(here) ? beside : over)?.querySelector<HTMLElement>(".slice")?.focus();
}
