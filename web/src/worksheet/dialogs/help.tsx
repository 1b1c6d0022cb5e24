// SPDX-License-Identifier: Apache-2.0
import { graphKeys } from "../graph/graph";
import { FRAME_KEYS, heardOf, PAGE_KEYS, TIME_KEYS } from "../pages/keys";
import { Dialog } from "./dialogs";

const NAMES: Record<string, string> = { " ": "Space", ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→" };

/** Every key with what it does. */
export function HelpDialog() {
	return (
		<Dialog name="help" title="Keys">
			<div class="keys-of-all">
				<Keys title="The page" keys={heardOf(PAGE_KEYS)} />
				<Keys title="Time" keys={heardOf(TIME_KEYS)} />
				<Keys title="Graphs" keys={heardOf(FRAME_KEYS)} />
				<Keys title="In the chosen graph" keys={graphKeys} />
			</div>
			<p class="quiet">
				Tab goes from control to control, Escape closes what is open, the menu key (or Shift+F10) on a value, a file of
				a tree or a part of an icicle breaks it down. With the pointer: click a value to see it in colour, Shift+click
				for more, click its handle to break it down; drag over a heat map to list the values of its I/Os; drag over
				numbers, or below a plot, to zoom to that time; turn the wheel to zoom, and drag with Shift to move.
			</p>
		</Dialog>
	);
}

function Keys({ title, keys }: { title: string; keys: readonly { key: string; words: string }[] }) {
	return (
		<section>
			<h3>{title}</h3>
			<dl>
				{keys.map((each) => (
					<div key={each.key}>
						<dt>
							<kbd>{NAMES[each.key] ?? each.key}</kbd>
						</dt>
						<dd>{each.words}</dd>
					</div>
				))}
			</dl>
		</section>
	);
}
