// SPDX-License-Identifier: Apache-2.0
/** Text of a gzip document in base64, as the report embeds its data. Throws with words for the reader. */
export async function decode(base64: string): Promise<string> {
	if (typeof DecompressionStream === "undefined") {
		throw new Error(
			"This browser can't unpack the report's data (it lacks DecompressionStream). Chrome 80, Firefox 113, Safari 16.4 and later can.",
		);
	}
	const bytes = Uint8Array.from(atob(base64.trim()), (letter) => letter.charCodeAt(0));
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
	try {
		return await new Response(stream).text();
	} catch {
		throw new Error("The report's data are damaged: the file was cut or changed on its way here.");
	}
}

/** A document embedded in the page under that element's id. */
export async function embedded<T>(id: string): Promise<T> {
	const element = document.getElementById(id);
	if (!element?.textContent) {
		throw new Error("The report's data are missing from this file.");
	}
	return JSON.parse(await decode(element.textContent)) as T;
}
