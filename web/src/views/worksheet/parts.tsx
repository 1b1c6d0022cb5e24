import { useState } from "preact/hooks";

/** The head of a table; `acts`: its last column holds buttons, and says so to those who do not see them. */
export function Head({ names, acts = false }: { names: readonly string[]; acts?: boolean }) {
	return (
		<thead>
			<tr>
				{names.map((name) => (
					<th key={name} scope="col">
						{name}
					</th>
				))}
				{acts && (
					<th scope="col">
						<span class="unseen">actions</span>
					</th>
				)}
			</tr>
		</thead>
	);
}

/** A button that acts when it is pressed twice: in between it asks whether that is meant. */
export function Sure({
	words,
	sure,
	looks = "small",
	act,
}: {
	words: string;
	sure: string;
	looks?: string;
	act: () => void;
}) {
	const [asked, setAsked] = useState(false);
	return (
		<button
			type="button"
			class={looks}
			onClick={() => {
				setAsked(!asked);
				if (asked) act();
			}}
		>
			{asked ? sure : words}
		</button>
	);
}
