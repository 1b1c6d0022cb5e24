// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/**
 * A dialog over the page. When it is added, the element with `data-first` gets the focus before the next key; when it is removed, the
 * focus returns to its previous element, or to that of `back`. `leave`: Escape was pressed, or a click was outside the dialog.
 */
export function Modal({
	looks,
	title,
	leave,
	back = (before) => before,
	children,
}: {
	/** Its classes. */
	looks: string;
	/** The id of the heading that names it. */
	title: string;
	leave: () => void;
	back?: (before: HTMLElement | null) => HTMLElement | null;
	children: ComponentChildren;
}) {
	const place = useRef<HTMLDialogElement>(null);
	const left = useRef(leave);
	left.current = leave;
	useLayoutEffect(() => {
		const dialog = place.current;
		const before = document.activeElement as HTMLElement | null;
		dialog?.showModal();
		dialog?.querySelector<HTMLElement>("[data-first]")?.focus();
		// the browser closes it later than the key: what follows Escape at once would still be the dialog's
		const leaves = (event: KeyboardEvent) => {
			if (event.key !== "Escape" || event.isComposing || event.defaultPrevented) return;
			event.preventDefault();
			left.current();
		};
		document.addEventListener("keydown", leaves);
		return () => {
			document.removeEventListener("keydown", leaves);
			// nothing takes the focus while a dialog covers it
			dialog?.remove();
			back(before)?.focus({ preventScroll: true });
		};
	}, []);
	return (
		// biome-ignore lint/a11y/useKeyWithClickEvents: Escape does the same
		<dialog
			ref={place}
			class={looks}
			aria-labelledby={title}
			// a closed one may still get this event when the next is open
			onClose={() => place.current && left.current()}
			onClick={(event) => event.target === place.current && left.current()}
		>
			{children}
		</dialog>
	);
}
