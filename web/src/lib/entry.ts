// SPDX-License-Identifier: Apache-2.0
import { messageOf } from "./errors";

/** Begin a page in its place in the document; where it can't, its place says why. */
export function enter(start: (home: HTMLElement) => Promise<void>): void {
	const home = document.getElementById("app");
	if (!home) return;
	start(home).catch((error: unknown) => {
		const problem = document.createElement("p");
		problem.className = "problem";
		problem.setAttribute("role", "alert");
		problem.textContent = messageOf(error);
		home.replaceChildren(problem);
	});
}
