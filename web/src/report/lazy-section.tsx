// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Part } from "./parts";

/** Ms after which a browser that does not say so has nothing else to do. */
const IDLE = 2000;

/** Load when a reader comes near, or the page has nothing else to do: what is printed has it. What is returned ends that. */
export function whenNear(place: Element, load: () => void): () => void {
	const tells = typeof requestIdleCallback === "function";
	const idle = tells ? requestIdleCallback(load) : setTimeout(load, IDLE);
	const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && load(), { rootMargin: "600px" });
	observer.observe(place);
	return () => {
		observer.disconnect();
		if (tells) cancelIdleCallback(idle as number);
		else clearTimeout(idle);
	};
}

interface Unpacking<T> {
	id: string;
	title: string;
	/** The data: undefined until they are unpacked, an error when they can't be. */
	found: T | Error | undefined;
	/** Unpacks them, once. */
	load: () => void;
	show: (found: T) => ComponentChildren;
}

/** A part of the report with data that is unpacked only when it is needed or when the page is idle. */
export function Unpacked<T>({ id, title, found, load, show }: Unpacking<T>) {
	const home = useRef<HTMLDivElement>(null);
	useEffect(() => (home.current ? whenNear(home.current, load) : undefined), [load]);
	return (
		<Part id={id} title={title}>
			<div ref={home}>
				{found === undefined && <p class="waiting">Unpacking…</p>}
				{found instanceof Error && <p class="problem">{found.message}</p>}
				{found !== undefined && !(found instanceof Error) && show(found)}
			</div>
		</Part>
	);
}

/** Which cell is shown, by its place; nothing where there is one alone. */
export function CellChoice(props: {
	id: string;
	cells: readonly { title: string }[];
	place: number;
	onPlace: (place: number) => void;
}) {
	const { id, cells, place, onPlace } = props;
	if (cells.length < 2) return null;
	return (
		<label>
			cell{" "}
			<select id={id} value={String(place)} onChange={(event) => onPlace(Number(event.currentTarget.value))}>
				{cells.map((each, i) => (
					<option key={each.title} value={String(i)}>
						{each.title}
					</option>
				))}
			</select>
		</label>
	);
}
