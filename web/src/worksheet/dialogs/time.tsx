// SPDX-License-Identifier: Apache-2.0
import { compared, facts, follows, sheet, whole } from "../../api/worksheet";
import { searchOddities } from "../pages/odd";
import { replay, toggleReplay } from "../replay";
import { offline } from "../session";
import { compare, move, moveCompared, pause, shown, showUnit, showWhole, toNow, zoom } from "../time-navigation";
import { lengthOf, lengthWords, oneOf, shiftWords, spanWords, UNITS } from "../times";
import { opened } from "./dialogs";

/** The digits distinguish this many parts of the shown time: from ten seconds on, seconds are whole. */
const STEPS = 10;

/** When: back, forward, closer, farther, lengths of time, and what it is compared with. */
export function TimeBar() {
	const span = shown();
	const live = follows.value;
	const length = "live" in sheet.value.time ? sheet.value.time.live * 1e9 : lengthOf(span);
	const other = compared.value;
	const words = spanWords(span, whole.value.from, live ? 1 : STEPS);
	return (
		<div class="time-bar" role="toolbar" aria-label="Time">
			<div class="controls">
				{!offline.value && (
					<button
						type="button"
						id="add"
						class="main"
						title="Add a statistic (+)"
						onClick={() => (opened.value = "add")}
					>
						+ Add statistic
					</button>
				)}
				<span class="buttons">
					<Button id="back" title="Earlier ([)" label="◀" act={() => move(-0.5)} />
					<Button id="forward" title="Later (])" label="▶" act={() => move(0.5)} />
					{facts.value?.live ? (
						<button type="button" id="pause" aria-pressed={!live} title="Hold or follow (space)" onClick={pause}>
							{live ? "Pause" : "Resume"}
						</button>
					) : (
						<Button id="latest" title="The latest (n)" label="Latest" act={toNow} />
					)}
				</span>
				<span class="buttons">
					<Button id="farther" title="Farther ({)" label="−" act={() => zoom(2)} />
					<Button id="closer" title="Closer (})" label="+" act={() => zoom(0.5)} />
					<Button id="whole" title="All of it (0)" label="All" act={showWhole} />
				</span>
				<span class="buttons">
					{UNITS.map((unit, i) => (
						<button
							key={unit.name}
							type="button"
							class="unit"
							aria-pressed={isMultiple(length, unit.seconds, i)}
							title={`${oneOf(unit.name)}; again: two, three… (${i + 1})`}
							onClick={() => showUnit(unit.seconds)}
						>
							{unit.short}
						</button>
					))}
				</span>
				<span class="buttons last">
					{!offline.value && (
						<button
							type="button"
							id="compare"
							aria-pressed={other !== null}
							title="Compare with another time (d)"
							onClick={compare}
						>
							Compare
						</button>
					)}
					{other && (
						<>
							<Button id="other-back" title="Compare with earlier, key (" label="◀" act={() => moveCompared(-0.5)} />
							<Button id="other-forward" title="Compare with later, key )" label="▶" act={() => moveCompared(0.5)} />
						</>
					)}
					{!offline.value && (
						<button
							type="button"
							id="odd"
							title="What differs most from the minutes before: in the marked time, or in the time shown (O)"
							onClick={() => void searchOddities()}
						>
							What is odd here?
						</button>
					)}
					{!offline.value && (
						<button
							type="button"
							id="replay"
							aria-pressed={replay.value !== null}
							title="Play the recording (P)"
							onClick={toggleReplay}
						>
							Replay
						</button>
					)}
					<button
						type="button"
						id="marks"
						title="Marks of runs and of users (g); set one (B)"
						onClick={() => (opened.value = "marks")}
					>
						Marks
					</button>
				</span>
			</div>
			<span class="reading" id="reading">
				<strong>{live ? `the last ${lengthWords(length)}` : lengthWords(Math.round(length))}</strong>
				{other && (
					<span
						class="quiet"
						id="compared"
						title={spanWords({ from: other.from, until: other.from + lengthOf(span) }, whole.value.from)}
					>
						with {shiftWords(span.from - other.from)}
					</span>
				)}
				<span class="quiet" title={spanWords(span, whole.value.from)}>
					{other ? timesOfDay(words) : words}
				</span>
			</span>
		</div>
	);
}

function Button({ id, title, label, act }: { id: string; title: string; label: string; act: () => void }) {
	return (
		<button type="button" id={id} title={title} aria-label={title} onClick={act}>
			{label}
		</button>
	);
}

/** A span without its first day, which the axes have: next to the other time there is no room for it. */
const timesOfDay = (words: string): string => words.replace(/^\d{4}-\d\d-\d\d /, "");

/** Whether this unit suits a length best: a multiple of it, and not a multiple of the next one. */
function isMultiple(length: number, seconds: number, place: number): boolean {
	const times = length / 1e9 / seconds;
	const next = UNITS[place + 1];
	const whole = (value: number) => Math.abs(value - Math.round(value)) < 1e-6 && value > 0.5;
	return whole(times) && !(next && whole(length / 1e9 / next.seconds));
}
