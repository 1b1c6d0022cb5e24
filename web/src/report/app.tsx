// SPDX-License-Identifier: Apache-2.0
import { theme, toggleTheme } from "../lib/theme";
import { Background } from "./background";
import { CellPanel } from "./cell-panel";
import { Comparison } from "./comparison";
import { Cover } from "./cover";
import { hasMaps } from "./map-data";
import { RunMaps } from "./maps";
import { hasProfiles } from "./profile-data";
import { ProfileGraphs } from "./profiles";
import { Panel } from "./run-panel";
import { Runs } from "./runs";
import { Sessions } from "./sessions";
import { report } from "./state";
import { Summary, Verdicts } from "./summary";
import { hasTarget } from "./target";

/** The whole page. */
export function App() {
	const { title, description, created, generator, variants } = report.value;
	return (
		<>
			<a class="skip" href="#cover">
				Skip to the answer
			</a>
			<header class="masthead">
				<div class="names">
					<h1>{title}</h1>
					{description && <p class="description">{description}</p>}
					<p class="about">
						{variants.map((variant) => (
							<span key={variant.name} class="variant">
								{variant.name}
								<small>
									{" "}
									{variant.baseline ? "baseline, " : ""}
									{variant.runs} {variant.runs === 1 ? "run" : "runs"}
								</small>
							</span>
						))}
						<span class="quiet">
							{created} · {generator}
						</span>
					</p>
				</div>
				<div class="tools no-print">
					<button type="button" onClick={() => print()}>
						Print
					</button>
					<button type="button" aria-pressed={theme.value === "dark"} onClick={toggleTheme} id="theme">
						{theme.value === "dark" ? "Light" : "Dark"}
					</button>
				</div>
			</header>
			<Contents />
			<main>
				<Cover />
				<Sessions />
				<Comparison />
				{hasMaps() && <RunMaps />}
				{hasProfiles() && <ProfileGraphs />}
				<Summary />
				<Verdicts />
				<Runs />
				<Background />
			</main>
			<CellPanel />
			<Panel />
		</>
	);
}

function Contents() {
	const { cover, sessions, sections, environment, assumptions, jobs, reproduce } = report.value;
	const parts: [string, string, boolean][] = [
		["cover", "Answer", cover.cards.length + cover.obstacles.length > 0],
		["sessions", sessions?.title ?? "", sessions !== null],
		["comparison", "Numbers", sections.length > 0],
		["maps", "Maps", hasMaps()],
		["profiles", "Profiles", hasProfiles()],
		["summary", "Summary", true],
		["verdicts", "Verdicts", true],
		["runs", "Runs", true],
		["target", "Target", hasTarget()],
		["environment", "Environment", environment.length > 0],
		["assumptions", "Assumptions", assumptions.length > 0],
		["job", "Job", jobs.length > 0],
		["reproduce", "Reproduce", reproduce.length > 0],
		["method", "Method", true],
	];
	return (
		<nav class="contents no-print" aria-label="Contents">
			{parts
				.filter(([, , there]) => there)
				.map(([id, title]) => (
					<a key={id} href={`#${id}`}>
						{title}
					</a>
				))}
		</nav>
	);
}
