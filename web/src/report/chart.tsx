// SPDX-License-Identifier: Apache-2.0
import { useMemo, useState } from "preact/hooks";
import { hasPanels, ownScales, specOf } from "../canvas/vega";
import type { ChartItem } from "../generated/report";
import { csv } from "../lib/datasets";
import { Drawing } from "./drawing";
import { download } from "./parts";
import { report } from "./state";

/** A chart with its title, what its marks mean, and its numbers as a file. */
export function Chart({ chart }: { chart: ChartItem }) {
	const datasets = report.value.datasets;
	const [isOwn, setOwn] = useState(false);
	const spec = useMemo(() => {
		const shared = specOf(chart, datasets);
		return isOwn ? ownScales(shared) : shared;
	}, [chart, datasets, isOwn]);
	const table = datasets[chart.table];
	return (
		<figure class={hasPanels(chart) ? "chart" : "chart single"} id={`chart-${chart.name}`}>
			<header>
				<h4>{chart.title}</h4>
				{hasPanels(chart) && (
					<label class="own-scales no-print">
						<input type="checkbox" checked={isOwn} onChange={(event) => setOwn(event.currentTarget.checked)} /> each
						panel has its own scale
					</label>
				)}
				{table && (
					<button
						type="button"
						class="small no-print"
						aria-label={`Numbers of “${chart.title}” as CSV`}
						onClick={() => download(`${chart.name}.csv`, csv(table, chart.table_columns))}
					>
						CSV
					</button>
				)}
			</header>
			<Drawing spec={spec} label={chart.title} />
			{chart.caption && <figcaption>{chart.caption}</figcaption>}
		</figure>
	);
}
