// SPDX-License-Identifier: Apache-2.0
import { effect, untracked } from "@preact/signals";
import { AGAIN, ask, unread } from "../api/client";
import { askAnew } from "../api/feed";
import { learn, trouble } from "../api/served";
import type { Recordings } from "../generated/api";
import { marks } from "./marks";

/**
 * Report a recording that can't be read, check it again, and request its data once it is readable; the returned function ends this.
 * `back`: what else is done then.
 */
export function watchReadable(back: () => Promise<void>): () => void {
	const look = async () => {
		try {
			learn((await ask<Recordings>("recordings")).recordings);
		} catch {
			// that the service is not reached is said elsewhere
		}
	};
	let before = trouble.peek();
	const ends = [
		effect(() => {
			if (unread.value > 0) void look();
		}),
		effect(() => {
			if (!trouble.value) return undefined;
			const asking = setInterval(look, AGAIN);
			return () => clearInterval(asking);
		}),
		effect(() => {
			const again = before !== "" && trouble.value === "";
			before = trouble.value;
			if (!again) return;
			untracked(() => {
				askAnew();
				marks.refresh();
				void back();
			});
		}),
	];
	return () => {
		for (const end of ends) end();
	};
}
