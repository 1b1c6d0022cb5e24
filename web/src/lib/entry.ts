// SPDX-License-Identifier: Apache-2.0
import { messageOf } from "./errors";

/** Start a page in its place in the document; if it can't start, its place shows the reason. */
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
