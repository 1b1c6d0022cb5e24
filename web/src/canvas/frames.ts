// SPDX-License-Identifier: Apache-2.0

const waiting = new Set<() => void>();
let frame = 0;
let isClaimed = false;

/** Call a function before the next picture of the page; several requests for one function are one call. All functions share one frame. */
export function beforeNextFrame(draw: () => void): void {
	waiting.add(draw);
	if (frame === 0) frame = requestAnimationFrame(run);
}

/** Drop a request. */
export const drop = (draw: () => void): boolean => waiting.delete(draw);

/** Whether the caller may paint what takes long: the first one of each frame may. Several of them would make the frame late. */
export function claimPaint(): boolean {
	const isFree = !isClaimed;
	isClaimed = true;
	return isFree;
}

function run(): void {
	frame = 0;
	isClaimed = false;
	const due = [...waiting];
	waiting.clear();
	for (const draw of due) {
		try {
			draw();
		} catch (error) {
			// an error in one graph must not stop the others
			reportError(error);
		}
	}
}
