// SPDX-License-Identifier: Apache-2.0
/** Follow a pointer from press to release, also outside of its element. */
export function follow(event: PointerEvent, move: (now: PointerEvent) => void): void {
	const home = event.currentTarget as HTMLElement;
	home.setPointerCapture(event.pointerId);
	home.addEventListener("pointermove", move);
	home.addEventListener("lostpointercapture", () => home.removeEventListener("pointermove", move), { once: true });
}
