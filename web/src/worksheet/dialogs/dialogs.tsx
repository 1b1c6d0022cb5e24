// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { focus } from "../../api/worksheet";
import { Modal } from "../../lib/modal";
import { homeOf } from "../arrangement";

/** The dialog that is open, "" for none. */
export const opened = signal<"" | "add" | "sheets" | "marks" | "help">("");

interface Words {
	name: typeof opened.value;
	title: string;
	children: ComponentChildren;
}

/** A dialog over the page; Escape and a click outside close it. */
export function Dialog(words: Words) {
	return opened.value === words.name ? <Opened {...words} /> : null;
}

function Opened({ name, title, children }: Words) {
	const chosen = useRef(focus.peek());
	const close = () => {
		if (opened.value === name) opened.value = "";
	};
	// keys act on a graph that was added in the dialog; if it is not drawn yet, it gets the focus later
	const back = (before: HTMLElement | null) => (focus.peek() === chosen.current ? before : homeOf(focus.peek()));
	return (
		<Modal looks={`sheet-dialog ${name}`} title={`${name}-title`} leave={close} back={back}>
			<div class="inside">
				<header>
					<h2 id={`${name}-title`}>{title}</h2>
					<button type="button" class="small" aria-label="Close" onClick={close}>
						×
					</button>
				</header>
				{children}
			</div>
		</Modal>
	);
}
