// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { theme, toggleTheme } from "./theme";

/** A page of the service, as the head of a page links it. */
export interface PageLink {
	href: string;
	title: string;
	isCurrent?: boolean;
}

/** The head of a page that lists what is served: links to the pages, controls, and the theme. */
export function PageHead({ pages, children }: { pages: readonly PageLink[]; children?: ComponentChildren }) {
	return (
		<header class="page-head">
			<h1>iolab</h1>
			<nav aria-label="Pages">
				{pages.map(({ href, title, isCurrent }) => (
					<a key={href} href={href} aria-current={isCurrent ? "page" : undefined}>
						{title}
					</a>
				))}
			</nav>
			{children}
			<button type="button" id="theme" onClick={toggleTheme}>
				{theme.value === "dark" ? "Light" : "Dark"}
			</button>
		</header>
	);
}
