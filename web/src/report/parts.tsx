// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import type { Grid, RunReason } from "../generated/report";
import { offer } from "../lib/files";
import type { Level } from "./run-table";
import { go } from "./state";

/** What reads a level without seeing its colour. */
const SIGNS: Record<Level | "NOTE", string> = { OK: "✓", UNJUDGED: "?", SUSPECT: "!", INVALID: "✕", NOTE: "i" };

/** A level of trust as a word with a sign and a colour. */
export function Badge({ level }: { level: Level | RunReason["level"] }) {
	return (
		<span class={`badge ${level.toLowerCase()}`}>
			<span aria-hidden="true">{SIGNS[level]}</span> {level}
		</span>
	);
}

/** A part of the page with its heading; `id` is its anchor. A `folded` part is opened by its heading. */
export function Part(props: { id: string; title: string; folded?: boolean; children: ComponentChildren }) {
	const { id, title, folded = false, children } = props;
	if (folded)
		return (
			<section id={id} aria-labelledby={`${id}-title`}>
				<details class="fold">
					<summary>
						<h2 id={`${id}-title`}>{title}</h2>
					</summary>
					<div>{children}</div>
				</details>
			</section>
		);
	return (
		<section id={id} aria-labelledby={`${id}-title`}>
			<h2 id={`${id}-title`}>{title}</h2>
			{children}
		</section>
	);
}

/** A run's name that opens it. */
export function RunButton({ id, children }: { id: string; children?: ComponentChildren }) {
	return (
		<button type="button" class="link" onClick={() => go({ run: id })}>
			{children ?? id}
		</button>
	);
}

/** Verbatim text with a button that copies it. */
export function Verbatim({ title, text }: { title: string; text: string }) {
	return (
		<figure class="verbatim">
			<figcaption>
				<span>{title}</span>
				<button type="button" class="small no-print" onClick={(event) => copy(event.currentTarget, text)}>
					Copy
				</button>
			</figcaption>
			{/* biome-ignore lint/a11y/noNoninteractiveTabindex: long text is scrolled with the keyboard */}
			<pre tabIndex={0}>{text}</pre>
		</figure>
	);
}

/** Words in rows; the first column names its row. */
export function PlainTable({ grid }: { grid: Grid }) {
	return (
		<>
			{/* biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled with the keyboard */}
			<section class="table" tabIndex={0} aria-label={grid.title}>
				<table>
					<caption>{grid.title}</caption>
					{grid.head.some((title) => title !== "") && (
						<thead>
							<tr>
								{grid.head.map((title, i) => (
									<th key={`${title}-${i}`} scope="col">
										{title}
									</th>
								))}
							</tr>
						</thead>
					)}
					<tbody>
						{grid.rows.map((row) => (
							<tr key={row.join("\n")}>
								<th scope="row">{row[0]}</th>
								{row.slice(1).map((text, i) => (
									<td key={`${grid.head[i + 1]}-${i}`}>{text}</td>
								))}
							</tr>
						))}
					</tbody>
				</table>
			</section>
			{grid.note && <p class="quiet">{grid.note}</p>}
		</>
	);
}

function copy(button: HTMLButtonElement, text: string): void {
	const said = (word: string) => {
		button.textContent = word;
		setTimeout(() => {
			button.textContent = "Copy";
		}, 1500);
	};
	// Pages opened from disk may be refused the clipboard; the text can still be selected.
	navigator.clipboard?.writeText(text).then(
		() => said("Copied"),
		() => said("Select it"),
	) ?? said("Select it");
}

/** Offer a table as a file. */
export function download(name: string, text: string): void {
	offer(name, new Blob([text], { type: "text/csv;charset=utf-8" }));
}
