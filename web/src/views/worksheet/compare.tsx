import { useMemo } from "preact/hooks";
import { wholeAxis } from "../../canvas/cells";
import { Changes } from "../../canvas/changes";
import { quantity } from "../../canvas/ticks";
import type { Difference } from "../../generated/api";
import type { Words } from "../../model/ask";
import { snapped } from "../../model/columns";
import { answerOf, wordsOf } from "../../model/feed";
import { lengthOf, spanWords } from "../../model/times";
import { type GraphSpec, sheet, spanOf, whole } from "../../model/worksheet";
import { useAsked, useRested } from "../graph/asked";
import { differenceOf } from "../graph/state";
import { TimeGraph } from "../graph/time-graph";
import { counted, rowWords } from "../graph/values";

/** A heat map less that of another time: blue where there is less now, orange where there is more. */
export function DifferenceView({ spec }: { spec: GraphSpec }) {
	const words = useRested(() => compared(spec), 120, [spec]);
	const { found, problem } = useAsked<Difference>("difference", words, 60);
	const content = useMemo(() => (found ? changes(spec, found) : null), [spec, found]);
	const other = sheet.value.compare;
	if (!other || answerOf(spec).value?.kind !== "map") return null;
	if (!compared(spec)) return <p class="quiet">Nothing to compare with: the recording's clock begins later.</p>;
	if (!words) return null;
	const times = [
		spanWords(spanOf(spec), whole.value.from),
		spanWords({ from: other.from, until: other.from + lengthOf(spanOf(spec)) }, whole.value.from),
	];
	return (
		<div class="difference">
			<h3>
				{times[0]} <span class="quiet">less</span> {times[1]}{" "}
				<span class="quiet">blue: less than then, orange: more, in I/Os a second</span>
			</h3>
			{problem && <p class="problem">{problem}</p>}
			{found && !content && <p class="quiet">Neither time holds anything to compare.</p>}
			<div class="difference-plot">
				<TimeGraph
					spec={spec}
					content={content}
					label={`${spec.statistic}: ${times.join(" less ")}`}
					marks={differenceOf(spec.id)}
				/>
			</div>
			<p class="quiet">{found?.notes.join(" · ") || "\u00a0"}</p>
		</div>
	);
}

/** What is asked for; null where there is nothing to compare. Both times begin with a whole column. */
function compared(spec: GraphSpec): Words | null {
	const other = sheet.value.compare;
	if (!other || answerOf(spec).value?.kind !== "map") return null;
	const { top: _, drawn: __, ...words } = wordsOf(spec);
	const interval = Number.parseInt(String(words.interval), 10);
	// what was left out of this time because no clock has it is left out of the other one
	const late = BigInt(String(words.from)) - snapped(spanOf(spec), interval).from;
	const from = snapped(other, interval).from + late;
	if (from < 0n) return null;
	const until = from + BigInt(String(words.to)) - BigInt(String(words.from));
	return { ...words, other_from: String(from), other_to: String(until) };
}

function changes(spec: GraphSpec, answer: Difference): Changes | null {
	const group = answer.group;
	if (!group) return null;
	const axis = wholeAxis(group, spec.scale || group.y_scale, spec.crop);
	return new Changes({
		answer,
		group,
		axis: spec.rows ? { ...axis, ...spec.rows } : axis,
		kind: spec.colour,
		row: (low, high) => ({ [group.y]: rowWords(low, high, group.unit, group.y) }),
		words: ({ change, count, other }) => ({
			difference: `${change > 0 ? "+" : ""}${quantity(change, "")}/s`,
			"this time": counted(count, group.y),
			"that time": counted(other, group.y),
		}),
	});
}
