// SPDX-License-Identifier: Apache-2.0
/** The share of I/Os that is left above a map; `zoomed`: another part of y is shown than any crop leaves. */
export function Crop<Share extends number>({
	shares,
	value,
	zoomed,
	onChange,
}: {
	shares: readonly Share[];
	value: number;
	zoomed: boolean;
	onChange: (share: Share) => void;
}) {
	return (
		<label>
			crop{" "}
			<select
				class="crop"
				title="The share of I/Os that is left above the map"
				value={zoomed ? "zoomed" : String(value)}
				onChange={(event) => {
					const share = shares.find((each) => String(each) === event.currentTarget.value);
					if (share !== undefined) onChange(share);
				}}
			>
				{zoomed && <option value="zoomed">zoomed</option>}
				{shares.map((share) => (
					<option key={share} value={String(share)}>
						{`${+(100 * share).toFixed(4)} %`}
					</option>
				))}
			</select>
		</label>
	);
}

/** Whether percentiles and mean are drawn over a map. */
export function Overlays({ value, onChange }: { value: boolean; onChange: (shown: boolean) => void }) {
	return (
		<label>
			<input
				type="checkbox"
				class="lines"
				checked={value}
				onChange={(event) => onChange(event.currentTarget.checked)}
			/>{" "}
			percentiles, mean
		</label>
	);
}

/** One of few. */
export function Choice<Value extends string>({
	label,
	name,
	title,
	values,
	value,
	words = (each) => each,
	onChange,
}: {
	label: string;
	name: string;
	title?: string;
	values: readonly Value[];
	value: Value;
	words?: (value: Value) => string;
	onChange: (value: Value) => void;
}) {
	return (
		<label>
			{label}{" "}
			<select
				class={name}
				title={title ?? label}
				value={value}
				onChange={(event) => {
					const found = values.find((each) => each === event.currentTarget.value);
					if (found !== undefined) onChange(found);
				}}
			>
				{values.map((each) => (
					<option key={each} value={each}>
						{words(each)}
					</option>
				))}
			</select>
		</label>
	);
}
