// SPDX-License-Identifier: Apache-2.0
import { theme, toggleTheme } from "../lib/theme";
import { Background } from "./background";
import { Comparison } from "./comparison";
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
			<a class="skip" href="#summary">
				Skip to the summary
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
				<Sessions />
				<Summary />
				<Verdicts />
				<Comparison />
				{hasMaps() && <RunMaps />}
				{hasProfiles() && <ProfileGraphs />}
				<Runs />
				<Background />
			</main>
			<Panel />
		</>
	);
}

function Contents() {
	const { sessions, sections, environment, assumptions, jobs, reproduce } = report.value;
	const parts: [string, string, boolean][] = [
		["sessions", sessions?.title ?? "", sessions !== null],
		["summary", "Summary", true],
		["verdicts", "Verdicts", true],
		["comparison", "Numbers", sections.length > 0],
		["maps", "Maps", hasMaps()],
		["profiles", "Profiles", hasProfiles()],
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
