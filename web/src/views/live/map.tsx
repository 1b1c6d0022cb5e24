import { useEffect, useState } from "preact/hooks";
import { quantity } from "../../canvas/ticks";
import type { DrawnMap, Who } from "../../generated/api";
import { type ChoiceSignal, wholeAxis } from "../../model/heatmap";
import { MapView } from "../heatmap-map";
import { percent } from "../heatmap-who";
import { ask } from "./feed";
import { add, chosen } from "./state";

/** A heat map with the least controls; a marked part is asked whose it is. */
export function LiveMap({ answer, choice }: { answer: DrawnMap; choice: ChoiceSignal }) {
	const group = answer.group;
	if (!group) return <p class="quiet">No I/O here has such a value.</p>;
	const { axis, crop, lines, brush } = choice.value;
	const change = (part: Partial<typeof choice.value>) => {
		choice.value = { ...choice.value, ...part };
	};
	return (
		<>
			<div class="controls">
				<label>
					crop{" "}
					<select
						class="crop"
						value={String(crop)}
						onChange={(event) => {
							const share = Number(event.currentTarget.value);
							change({ crop: share, axis: wholeAxis(group, axis.scale, share), brush: null });
						}}
					>
						{crop < 0 && <option value="-1">zoomed</option>}
						{group.crops.map(([share]) => (
							<option key={share} value={String(share)}>{`${+(100 * share).toFixed(4)} %`}</option>
						))}
					</select>
				</label>
				{group.lines.length > 0 && (
					<label>
						<input
							type="checkbox"
							checked={lines}
							onChange={(event) => change({ lines: event.currentTarget.checked })}
						/>{" "}
						percentiles, mean
					</label>
				)}
				{brush && (
					<button type="button" class="small" onClick={() => change({ brush: null })}>
						Unmark
					</button>
				)}
			</div>
			<MapView group={group} choice={choice} />
			{brush && <WhoIsThis answer={answer} area={brush.area} />}
		</>
	);
}

function WhoIsThis({
	answer,
	area,
}: {
	answer: DrawnMap;
	area: { from: number; to: number; low: number; high: number };
}) {
	const [found, setFound] = useState<Who | string | null>(null);
	const { from, to, low, high } = area;
	useEffect(() => {
		let current = true;
		setFound(null);
		const unit = answer.group?.unit === "ns" ? "ns" : "B";
		// a moment since 1970 in ns has more digits than a number holds
		const at = (time: number) => String(BigInt(answer.t0_ns) + BigInt(Math.round(time)));
		const bound = (value: number) => `${Math.max(0, Math.round(value))}${unit}`;
		const timer = setTimeout(() => {
			ask<Who>("who", {
				recording: chosen.value,
				statistic: answer.statistic,
				from: at(from),
				to: at(to),
				low: bound(low),
				high: bound(high),
				top: 8,
			}).then(
				(who) => current && setFound(who),
				(error: unknown) => current && setFound(error instanceof Error ? error.message : String(error)),
			);
		}, 300);
		return () => {
			current = false;
			clearTimeout(timer);
		};
	}, [answer, from, to, low, high]);
	if (typeof found === "string") return <p class="problem">{found}</p>;
	if (!found) return <p class="waiting">Whose are these?</p>;
	const base = answer.statistic.slice(0, answer.statistic.lastIndexOf("["));
	return (
		<div class="who" role="status">
			<p>
				<strong>{found.inside.toLocaleString("en").replaceAll(",", " ")} I/Os</strong> between {quantity(from, "ns")}{" "}
				and {quantity(to, "ns")}
			</p>
			{found.dimensions.map((dimension) => (
				<table key={dimension.field}>
					<thead>
						<tr>
							<th scope="col">{dimension.field}</th>
							<th scope="col">inside</th>
							<th scope="col">outside</th>
						</tr>
					</thead>
					<tbody>
						{dimension.values.map((share) => (
							<tr key={share.value}>
								<th scope="row">
									<button
										type="button"
										onClick={() =>
											add(
												`${base}[${dimension.field}="${share.value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"][${breakdown(answer)}]`,
											)
										}
									>
										{share.value}
									</button>
								</th>
								<td>{percent(share.share_inside ?? 0)}</td>
								<td>{percent(share.share_outside ?? 0)}</td>
							</tr>
						))}
					</tbody>
				</table>
			))}
		</div>
	);
}

const breakdown = (answer: DrawnMap) => answer.statistic.slice(answer.statistic.lastIndexOf("[") + 1, -1);
