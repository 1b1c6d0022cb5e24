import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** The dialog that is open, "" for none. */
export const opened = signal<"" | "add" | "sheets" | "marks" | "help">("");

/** A dialog over the page; Escape and a click beside it close it. */
export function Dialog({
	name,
	title,
	children,
}: {
	name: typeof opened.value;
	title: string;
	children: ComponentChildren;
}) {
	const place = useRef<HTMLDialogElement>(null);
	const shown = opened.value === name;
	useEffect(() => {
		if (!shown) return;
		place.current?.showModal();
		place.current?.querySelector<HTMLElement>("[data-first]")?.focus();
	}, [shown]);
	if (!shown) return null;
	const close = () => {
		if (opened.value === name) opened.value = "";
	};
	return (
		// biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it as well
		<dialog
			ref={place}
			class={`sheet-dialog ${name}`}
			aria-labelledby={`${name}-title`}
			onCancel={close}
			onClose={close}
			onClick={(event) => event.target === place.current && close()}
		>
			<div class="inside">
				<header>
					<h2 id={`${name}-title`}>{title}</h2>
					<button type="button" class="small" aria-label="Close" onClick={close}>
						×
					</button>
				</header>
				{children}
			</div>
		</dialog>
	);
}
