// SPDX-License-Identifier: Apache-2.0
import { Part, Verbatim } from "./parts";
import { report } from "./state";
import { hasTarget, Target } from "./target";

/** Where and how it was measured, and how to measure it again. */
export function Background() {
	const { environment, assumptions, jobs, reproduce, method } = report.value;
	return (
		<>
			{hasTarget() && <Target />}
			{environment.length > 0 && (
				<Part id="environment" title="Environment" folded>
					<div class="table">
						<table class="facts">
							<tbody>
								{environment.map((fact) => (
									<tr key={fact.name}>
										<th scope="row">{fact.name}</th>
										<td class="words">
											{fact.values.length < 2
												? fact.values[0]
												: fact.values.map((value, i) => (
														<span key={value} class="differs">
															{value} <small>({fact.runs[i]} runs)</small>
														</span>
													))}
										</td>
									</tr>
								))}
							</tbody>
						</table>
					</div>
				</Part>
			)}
			{assumptions.length > 0 && (
				<Part id="assumptions" title="Assumptions" folded>
					<ul>
						{assumptions.map((one) => (
							<li key={one.text}>
								{one.text} <small>({one.runs} runs)</small>
							</li>
						))}
					</ul>
				</Part>
			)}
			{jobs.length > 0 && (
				<Part id="job" title="Exact job" folded>
					{jobs.map((block) => (
						<Verbatim key={block.title} {...block} />
					))}
				</Part>
			)}
			{reproduce.length > 0 && (
				<Part id="reproduce" title="Reproduce" folded>
					{reproduce.map((block) => (
						<Verbatim key={block.title} {...block} />
					))}
				</Part>
			)}
			<Part id="method" title="How numbers are judged" folded>
				{method.map((part) => (
					<section key={part.id} id={`method-${part.id}`} class="method">
						<h3>{part.title}</h3>
						{part.text.map((text) => (
							<p key={text}>{text}</p>
						))}
					</section>
				))}
			</Part>
		</>
	);
}
