// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { TopLevelSpec } from "vega-lite";
import { draw } from "../canvas/vega";
import { messageOf } from "../lib/errors";
import { printing, theme } from "../lib/theme";
import { report } from "./state";

/** A Vega-Lite drawing that follows the theme. Drawn before the browser paints, so nothing jumps. */
export function Drawing({ spec, label }: { spec: TopLevelSpec; label: string }) {
	const home = useRef<HTMLDivElement>(null);
	const [problem, setProblem] = useState("");
	const colours = printing.value ? "light" : theme.value;
	useLayoutEffect(() => {
		if (!home.current) return;
		try {
			return draw(home.current, spec, report.value.themes[colours] ?? {}, label);
		} catch (error) {
			setProblem(`This chart can't be drawn: ${messageOf(error)}`);
			return;
		}
	}, [spec, label, colours]);
	return (
		<>
			<div class="drawing" ref={home} />
			{problem && <p class="problem">{problem}</p>}
		</>
	);
}
