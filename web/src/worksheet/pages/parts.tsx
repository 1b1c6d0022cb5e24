// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";

/** The order of the rows of a table: its column, and whether the largest is first; null for the original order. */
export type Order = { by: string; down: boolean } | null;

/** The order after a click on a column: the largest first, then the smallest, then as they come. */
export function nextOrder(now: Order, by: string): Order {
	if (now?.by !== by) return { by, down: true };
	return now.down ? { by, down: false } : null;
}

interface Columns {
	names: readonly string[];
	/** Whether the last column holds buttons: it says so to those who do not see them. */
	acts?: boolean;
	/** Columns by which rows can be put in order, the order they have, and what a click on one does. */
	sorted?: { by: readonly string[]; order: Order; sort: (name: string) => void };
}

/** The head of a table. */
export function Head({ names, acts = false, sorted }: Columns) {
	const sign = (name: string) => (sorted?.order?.by === name ? (sorted.order.down ? " ▼" : " ▲") : "");
	const said = (name: string) =>
		sorted?.order?.by === name ? (sorted.order.down ? "descending" : "ascending") : undefined;
	return (
		<thead>
			<tr>
				{names.map((name) => (
					<th key={name} scope="col" aria-sort={said(name)}>
						{sorted?.by.includes(name) ? (
							<button type="button" class="link" title="Put in order" onClick={() => sorted.sort(name)}>
								{name}
								{sign(name)}
							</button>
						) : (
							name
						)}
					</th>
				))}
				{acts && (
					<th scope="col">
						<span class="unseen">actions</span>
					</th>
				)}
			</tr>
		</thead>
	);
}

/** A button that acts when it is pressed twice: in between it asks whether that is meant. Escape takes that back, and so does leaving it. */
export function Sure({
	words,
	sure,
	looks = "small",
	act,
}: {
	words: string;
	sure: string;
	looks?: string;
	act: () => void;
}) {
	const [asked, setAsked] = useState(false);
	return (
		<button
			type="button"
			class={looks}
			onBlur={() => setAsked(false)}
			onKeyDown={(event) => {
				if (!asked || event.key !== "Escape") return;
				// it closes nothing else
				event.preventDefault();
				event.stopPropagation();
				setAsked(false);
			}}
			onClick={() => {
				setAsked(!asked);
				if (asked) act();
			}}
		>
			{asked ? sure : words}
		</button>
	);
}
