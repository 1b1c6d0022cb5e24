// SPDX-License-Identifier: Apache-2.0

import { historyAddress } from "../lib/addresses";
import { visible } from "../lib/names";
import { countWords, dateWords } from "../lib/words";
import { served } from "./state";

/** The histories, each with its period. */
export function HistoryList() {
	const { histories } = served.value;
	if (histories.length === 0) return null;
	return (
		<section aria-labelledby="histories">
			<h2 id="histories">Histories</h2>
			<ul class="tiles">
				{histories.map((history) => (
					<li key={history.name} class="tile">
						<h3>
							{history.problem ? (
								visible(history.name)
							) : (
								<a href={historyAddress(history.name)}>{visible(history.name)}</a>
							)}
						</h3>
						{history.problem ? (
							<p class="problem">{history.problem}</p>
						) : (
							<p class="quiet">
								{countWords(history.entries, "result")}, {dateWords(history.first_ns)} to {dateWords(history.last_ns)}{" "}
								UTC
							</p>
						)}
					</li>
				))}
			</ul>
		</section>
	);
}
