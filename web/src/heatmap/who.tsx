// SPDX-License-Identifier: Apache-2.0
import type { Area } from "../canvas/spaces";
import { percent, quantity, thousands, UNITS } from "../canvas/ticks";
import type { HeatMapCounts, HeatMapGroup } from "../generated/maps";
import { who } from "./attribution";

/** Processes, devices and so on in the marked part: shares inside against outside, for each dimension of the answer. */
export function WhoView({ group, map, area }: { group: HeatMapGroup; map: HeatMapCounts; area: Area }) {
	const found = who(map, group, area);
	return (
		<div class="who" role="status">
			<p>
				<strong>{amount(group, found.inside)}</strong> of {map.label},{" "}
				{percent(found.inside / Math.max(1, found.total))} of all, between {quantity(area.from, "ns")} and{" "}
				{quantity(area.to, "ns")}, {range(group, area.low, area.high)}
			</p>
			{found.dimensions.map((dimension) => (
				<table key={dimension.name}>
					<thead>
						<tr>
							<th scope="col">{dimension.name}</th>
							<th scope="col">inside</th>
							<th scope="col">share inside</th>
							<th scope="col">share outside</th>
						</tr>
					</thead>
					<tbody>
						{dimension.shares.map((share) => (
							<tr key={share.name}>
								<th scope="row">{share.name}</th>
								<td>{amount(group, share.count)}</td>
								<td>{percent(share.inside)}</td>
								<td>{percent(share.outside)}</td>
							</tr>
						))}
					</tbody>
				</table>
			))}
			{found.dimensions.length === 0 && <p class="quiet">These I/Os do not differ in operation, device or process.</p>}
		</div>
	);
}

/** A count of I/Os, the time spent in them, or the bytes that they moved. */
export function amount(group: Pick<HeatMapGroup, "weight">, value: number): string {
	if (group.weight !== "count") return quantity(value, UNITS[group.weight]);
	return `${thousands(value)} I/O${Math.abs(value) === 1 ? "" : "s"}`;
}

/** A bucket's values; its upper bound is not in it. */
export function range(group: Pick<HeatMapGroup, "unit">, low: number, high: number): string {
	if (high - low <= 1) return quantity(low, group.unit, 9);
	return `${quantity(low, group.unit)} to ${quantity(high, group.unit)}`;
}
