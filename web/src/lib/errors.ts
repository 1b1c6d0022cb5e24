// SPDX-License-Identifier: Apache-2.0
import { visible } from "./names";

/** What is said where the service was not reached; a page that says so in more words leaves it out. */
export const UNREACHED = "The service is not reached.";

/** Words but those that the page says anyhow. */
export const besides = (words: readonly (string | false)[]): string[] =>
	words.filter((each): each is string => Boolean(each) && each !== UNREACHED);

/** The message of an error, as a page shows it: it may contain names from other people's files. */
export const messageOf = (error: unknown): string => visible(error instanceof Error ? error.message : String(error));
