// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import { follow } from "../pages/drag";

const KEY = "iolab-panel";
const [USUAL, NARROWEST, WIDEST] = [15, 8, 60];
const STEP = 1;

/** The width of the lists left of all graphs, in rem; that of an earlier visit. */
export const panelWidth = signal(kept());

function kept(): number {
	try {
		return within(Number(localStorage.getItem(KEY) ?? USUAL));
	} catch {
		return USUAL;
	}
}

function within(width: number): number {
	return Number.isFinite(width) ? Math.min(WIDEST, Math.max(NARROWEST, Math.round(4 * width) / 4)) : USUAL;
}

/** Make the lists so wide, and remember it for the next visit. */
export function setPanelWidth(width: number): void {
	panelWidth.value = within(width);
	try {
		localStorage.setItem(KEY, String(panelWidth.value));
	} catch {
		// it lasts as long as the page
	}
}

/** The border between list and plot: dragged, moved by the arrows, and put back by a double click. */
export function PanelDivider() {
	const drag = (event: PointerEvent) => {
		const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
		const [start, width] = [event.clientX, panelWidth.peek()];
		event.preventDefault();
		follow(event, (now) => setPanelWidth(width + (now.clientX - start) / rem));
	};
	const key = (event: KeyboardEvent) => {
		const by = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
		if (!by) return;
		event.preventDefault();
		event.stopPropagation();
		setPanelWidth(panelWidth.peek() + by);
	};
	return (
		// biome-ignore lint/a11y/useSemanticElements: a line between two parts can be moved
		<div
			class="divider"
			role="separator"
			aria-orientation="vertical"
			aria-label="Width of the list"
			aria-valuemin={NARROWEST}
			aria-valuemax={WIDEST}
			aria-valuenow={panelWidth.value}
			tabIndex={0}
			title="Width of the list: drag, arrows, double click for the usual width"
			onPointerDown={drag}
			onKeyDown={key}
			onDblClick={() => setPanelWidth(USUAL)}
		/>
	);
}
