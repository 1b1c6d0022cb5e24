// SPDX-License-Identifier: Apache-2.0
import { whole } from "../../api/worksheet";
import { closeReplay, playOrPause, position, replay, SPEEDS, seek, setSpeed } from "../replay";
import { shown } from "../time-navigation";
import { momentWords } from "../times";
import { makesClips, recordingClip, toggleClip } from "./clip";
import "./replay.css";

/** Steps of the slider. */
const STEPS = 1000;

/** Play, pause, speed and position of a replay; nothing while there is none. */
export function ReplayBar() {
	const now = replay.value;
	if (!now) return null;
	const end = momentWords(shown().until, 1e9, whole.value.from);
	return (
		<div class="replay" role="toolbar" aria-label="Replay">
			<button type="button" id="play" class="main" title="Play or pause (space)" onClick={playOrPause}>
				{now.playing ? "❚❚ Pause" : "▶ Play"}
			</button>
			<label>
				speed{" "}
				<select
					id="speed"
					title="Slower (,) or faster (.)"
					value={String(now.speed)}
					onChange={(event) => {
						const speed = SPEEDS.find((each) => String(each) === event.currentTarget.value);
						if (speed) setSpeed(speed);
					}}
				>
					{SPEEDS.map((each) => (
						<option key={each} value={String(each)}>
							×{each}
						</option>
					))}
				</select>
			</label>
			<input
				type="range"
				id="position"
				aria-label="Position in the recording"
				aria-valuetext={end}
				min={0}
				max={STEPS}
				step={1}
				value={Math.round(position.value * STEPS)}
				onInput={(event) => seek(Number(event.currentTarget.value) / STEPS)}
			/>
			<span class="quiet" id="played">
				{end}
			</span>
			<button
				type="button"
				id="clip"
				aria-pressed={recordingClip.value}
				disabled={!makesClips()}
				title={makesClips() ? "Play, and save the graphs as a WebM clip" : "This browser can't record a canvas"}
				onClick={toggleClip}
			>
				{recordingClip.value ? "■ End the clip" : "● Save a clip"}
			</button>
			<button
				type="button"
				class="small"
				aria-label="Close the replay"
				title="Close the replay (P)"
				onClick={closeReplay}
			>
				×
			</button>
		</div>
	);
}
