// SPDX-License-Identifier: Apache-2.0

/** The share of the window that an answer below a graph gets. */
const SHARE = 0.4;

/** Scroll so far that the begin of an answer below a graph is visible: a lone graph fills the window. */
export function reveal(answer: Element | null | undefined): void {
	if (!answer) return;
	const under = answer.getBoundingClientRect().top - innerHeight;
	if (under < (-SHARE / 2) * innerHeight) return;
	const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
	scrollBy({ top: under + SHARE * innerHeight, behavior: calm ? "auto" : "smooth" });
}
