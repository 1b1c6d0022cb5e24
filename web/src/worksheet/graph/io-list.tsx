// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";
import { wordsOf } from "../../api/feed";
import { type GraphSpec, sheet, whole } from "../../api/worksheet";
import { quantity, thousands, type Unit } from "../../canvas/ticks";
import type { IoList as Answer, SingleIo } from "../../generated/api";
import { visible } from "../../lib/names";
import { momentWords, spanWords } from "../times";
import { IoTimeLine, processWords } from "./io-time-line";
import "./io-list.css";
import { type Mark, stateOf } from "./state";
import { useAsked } from "./use-answer";
import { rowWords } from "./values";
import { boxWords } from "./who";

/** I/Os of a page. */
const PAGE = 100;

type Order = "time" | "op" | "latency" | "queue" | "size" | "offset" | "process" | "file" | "device";
interface Sorting {
	order: Order;
	descending: boolean;
}

interface Column {
	order: Order;
	title: string;
	isNumber?: boolean;
	words: (io: SingleIo) => string;
}

/** A number in µs as fine as it was recorded, so that the decimals of a column are below each other. */
const microseconds = (ns: number | null): string => {
	if (ns === null) return "–";
	const [whole = "", part = ""] = (ns / 1e3).toFixed(3).split(".");
	return `${thousands(Number(whole))}.${part}`;
};

const measured = (value: number | null, unit: Unit) => (value === null ? "–" : quantity(value, unit, 5));
const named = (name: string | null) => (name === null ? "–" : visible(name));

const COLUMNS: readonly Column[] = [
	{ order: "time", title: "time", words: (io) => clockWords(io.time_ns) },
	{ order: "op", title: "op", words: (io) => io.op },
	{ order: "latency", title: "latency (µs)", isNumber: true, words: (io) => microseconds(io.latency_ns) },
	{ order: "size", title: "size", isNumber: true, words: (io) => measured(io.size_bytes, "B") },
	{
		order: "offset",
		title: "offset (bytes)",
		isNumber: true,
		words: (io) => (io.offset_bytes === null ? "–" : thousands(io.offset_bytes)),
	},
	{ order: "process", title: "process", words: (io) => processWords(io) },
	{ order: "file", title: "file", words: (io) => named(io.file) },
	{ order: "device", title: "device", words: (io) => named(io.device) },
];

/** The clock's time of a moment, without its day. */
const clockWords = (time_ns: number) => momentWords(time_ns, 1e3, whole.peek().from).replace(/^\d{4}-\d\d-\d\d /, "");

/** The single I/Os of a part of a map, a page of them; the chosen I/O is shown through the layers. */
export function IoList({ spec, y, unit }: { spec: GraphSpec; y: string; unit: Unit }) {
	const { listed } = stateOf(spec.id);
	const part = listed.value;
	if (!part) return null;
	return <Listed key={JSON.stringify(part)} spec={spec} part={part} y={y} unit={unit} />;
}

function Listed({ spec, part, y, unit }: { spec: GraphSpec; part: Mark; y: string; unit: Unit }) {
	const [{ order, descending }, setSorting] = useState<Sorting>({ order: "time", descending: false });
	const [skip, setSkip] = useState(0);
	const [chosen, setChosen] = useState("");
	const home = useRef<HTMLElement>(null);
	useEffect(() => home.current?.scrollIntoView?.({ block: "nearest" }), []);
	const { recording, statistic, source } = wordsOf(spec);
	const page = { order, descending: String(descending), skip, limit: PAGE };
	const words = { recording, statistic, source, ...boxWords(part, unit), ...page };
	const { found, stale, problem } = useAsked<Answer>("ios", words, 0);
	const close = () => {
		stateOf(spec.id).listed.value = null;
	};
	const sort = (next: Order) => {
		setSkip(0);
		setSorting({ order: next, descending: next === order ? !descending : next === "latency" || next === "size" });
	};
	return (
		<section ref={home} class="io-list" aria-label="Single I/Os" aria-busy={stale}>
			<div class="io-head">
				<strong>
					{found ? `${thousands(found.total)} I/O${found.total === 1 ? "" : "s"}` : "I/Os"} of{" "}
					{spanWords({ from: part.from, until: part.until }, whole.value.from)},{" "}
					{rowWords(part.low, part.high, unit, y)}
				</strong>
				<span class="room" />
				{found && found.rows > PAGE && <Pages rows={found.rows} skip={skip} set={setSkip} />}
				<button type="button" class="small" title="Escape" onClick={close}>
					Close the list
				</button>
			</div>
			{problem && <p class="problem">{problem}</p>}
			{!found && !problem && <p class="quiet waiting">Which I/Os are these?</p>}
			{found && <Table answer={found} sorting={{ order, descending }} sort={sort} chosen={chosen} choose={setChosen} />}
			{found?.notes.map((note) => (
				<p key={note} class="quiet">
					{note}
				</p>
			))}
			{chosen && <IoTimeLine recording={sheet.value.recording} id={chosen} />}
		</section>
	);
}

function Pages({ rows, skip, set }: { rows: number; skip: number; set: (skip: number) => void }) {
	return (
		<span class="buttons">
			<button
				type="button"
				class="small"
				aria-label="The I/Os before"
				disabled={skip === 0}
				onClick={() => set(Math.max(0, skip - PAGE))}
			>
				◀
			</button>
			<span class="quiet">
				{thousands(skip + 1)} – {thousands(Math.min(rows, skip + PAGE))} of {thousands(rows)}
			</span>
			<button
				type="button"
				class="small"
				aria-label="The I/Os after"
				disabled={skip + PAGE >= rows}
				onClick={() => set(skip + PAGE)}
			>
				▶
			</button>
		</span>
	);
}

interface TableParts {
	answer: Answer;
	sorting: Sorting;
	sort: (order: Order) => void;
	chosen: string;
	choose: (id: string) => void;
}

function Table({ answer, sorting, sort, chosen, choose }: TableParts) {
	// a column of which nothing is known takes no room
	const shown = COLUMNS.filter(
		({ order, words }) => order === "time" || order === sorting.order || answer.ios.some((io) => words(io) !== "–"),
	);
	return (
		// biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by the keyboard
		<section class="table io-table" tabIndex={0} aria-label="I/Os">
			<table>
				<thead>
					<tr>
						{shown.map(({ order, title, isNumber }) => (
							<th
								key={order}
								scope="col"
								class={isNumber ? "number" : undefined}
								aria-sort={sorting.order !== order ? "none" : sorting.descending ? "descending" : "ascending"}
							>
								<button type="button" class="link" title={`Sort by ${title}`} onClick={() => sort(order)}>
									{title}
									{sorting.order === order && (sorting.descending ? " ▼" : " ▲")}
								</button>
							</th>
						))}
					</tr>
				</thead>
				<tbody>
					{answer.ios.map((io) => (
						<tr key={io.id} class={io.id === chosen ? "chosen" : undefined}>
							{shown.map(({ order, words, isNumber }) =>
								order === "time" ? (
									<th key={order} scope="row">
										<button
											type="button"
											class="link"
											title="This I/O through the layers"
											aria-expanded={io.id === chosen}
											onClick={() => choose(io.id === chosen ? "" : io.id)}
										>
											{words(io)}
										</button>
									</th>
								) : (
									<td key={order} class={isNumber ? "number" : "name"} title={words(io)}>
										{words(io)}
										{order === "latency" && io.error && <span class="problem"> {visible(io.error)}</span>}
									</td>
								),
							)}
						</tr>
					))}
				</tbody>
			</table>
		</section>
	);
}
