// SPDX-License-Identifier: Apache-2.0

import { worksheetAddress } from "../lib/addresses";
import { visible } from "../lib/names";
import { PageHead } from "../lib/page-head";
import { countWords } from "../lib/words";
import { toggleZone, zone } from "../lib/zone";
import { Matrix } from "./matrix";
import { MEASURES, type Measure, NAMES } from "./measures";
import {
	answer,
	archive,
	by,
	filter,
	HOST,
	hosts,
	isAsking,
	LABEL,
	labelNames,
	measure,
	type Order,
	order,
	problem,
	SPANS,
	span,
} from "./state";

const PAGES = [
	{ href: "/fleet", title: "Fleet", isCurrent: true },
	{ href: "/start", title: "Start" },
	{ href: "/worksheet", title: "Worksheet" },
];

/** All hosts of an archive over time. */
export function FleetApp() {
	const shown = answer.value;
	return (
		<div class="fleet">
			<PageHead pages={PAGES}>
				<button type="button" onClick={toggleZone}>
					{zone.value === "UTC" ? "Local time" : "UTC"}
				</button>
			</PageHead>
			<main>
				<Controls />
				{problem.value && (
					<p class="problem" role="alert">
						{problem.value}
					</p>
				)}
				{shown && (
					<>
						<p class="quiet">
							{visible(shown.archive)}:{" "}
							{countWords(
								hosts.value.reduce((count, row) => count + row.hosts, 0),
								"host",
							)}
							{isAsking.value && ", asking…"} <a href={worksheetAddress(shown.whole)}>Worksheet of all hosts</a>
						</p>
						<Matrix shown={shown} />
						<Notes notes={shown.notes} />
					</>
				)}
			</main>
		</div>
	);
}

function Controls() {
	const archives = answer.value?.archives ?? [];
	return (
		<form class="controls" onSubmit={(event) => event.preventDefault()}>
			<fieldset>
				<legend>Measure</legend>
				{NAMES.map((name: Measure) => (
					<label key={name}>
						<input
							type="radio"
							name="measure"
							checked={measure.value === name}
							onChange={() => {
								measure.value = name;
							}}
						/>
						{MEASURES[name].title}
					</label>
				))}
			</fieldset>
			<label>
				Time
				<select
					value={span.value}
					onChange={(event) => {
						span.value = event.currentTarget.value;
					}}
				>
					{Object.entries(SPANS).map(([value, words]) => (
						<option key={value} value={value}>
							{words}
						</option>
					))}
				</select>
			</label>
			{labelNames.value.length > 0 && (
				<label>
					Rows
					<select
						value={by.value}
						onChange={(event) => {
							by.value = event.currentTarget.value;
							filter.value = "";
						}}
					>
						{[HOST, ...labelNames.value].map((name) => (
							<option key={name} value={name}>
								{name === HOST ? "Hosts" : `Each ${visible(name)}`}
							</option>
						))}
					</select>
				</label>
			)}
			<label>
				Order
				<select
					value={order.value}
					onChange={(event) => {
						order.value = event.currentTarget.value as Order;
					}}
				>
					<option value="name">Name</option>
					<option value="value">Largest value first</option>
					{by.value === HOST &&
						labelNames.value.map((name) => (
							<option key={name} value={`${LABEL}${name}`}>
								{name}
							</option>
						))}
				</select>
			</label>
			<label>
				Find
				<input
					type="search"
					placeholder={by.value === HOST ? "name or label" : visible(by.value)}
					value={filter.value}
					onInput={(event) => {
						filter.value = event.currentTarget.value;
					}}
				/>
			</label>
			{archives.length > 1 && (
				<label>
					Archive
					<select
						value={archive.value || answer.value?.archive}
						onChange={(event) => {
							archive.value = event.currentTarget.value;
						}}
					>
						{archives.map((url) => (
							<option key={url} value={url}>
								{visible(url)}
							</option>
						))}
					</select>
				</label>
			)}
		</form>
	);
}

function Notes({ notes }: { notes: readonly string[] }) {
	if (notes.length === 0) return null;
	return (
		<details>
			<summary>{countWords(notes.length, "note")}</summary>
			<ul>
				{notes.map((note) => (
					<li key={note}>{visible(note)}</li>
				))}
			</ul>
		</details>
	);
}
