// SPDX-License-Identifier: Apache-2.0
/** Offer a file to the reader. */
export function offer(name: string, content: Blob): void {
	const address = URL.createObjectURL(content);
	const anchor = Object.assign(document.createElement("a"), { href: address, download: name });
	anchor.click();
	setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A name that every file system takes. */
export function fileName(words: string, ending: string): string {
	const plain = words.replaceAll(/[^\p{L}\p{N}._=-]+/gu, "-").replaceAll(/^[-.]+|-+$/g, "");
	return `${plain.slice(0, 100) || "worksheet"}.${ending}`;
}
