// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { specOf } from "../canvas/vega";
import type { ChartItem } from "../generated/report";
import { csv } from "../lib/datasets";
import { Drawing } from "./drawing";
import { download } from "./parts";
import { report } from "./state";

/** A chart with its title, what its marks mean, and its numbers as a file. */
export function Chart({ chart }: { chart: ChartItem }) {
	const datasets = report.value.datasets;
	const spec = useMemo(() => specOf(chart, datasets), [chart, datasets]);
	const table = datasets[chart.table];
	return (
		<figure class="chart" id={`chart-${chart.name}`}>
			<header>
				<h4>{chart.title}</h4>
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
