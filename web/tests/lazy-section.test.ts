// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, it, vi } from "vitest";
import { whenNear } from "../src/report/lazy-section";

type Seen = (entries: { isIntersecting: boolean }[]) => void;

/** A page in which the test says when a place is near. */
function near(): { see: Seen; disconnect: () => void } {
	const page = { see: (() => undefined) as Seen, disconnect: vi.fn() };
	vi.stubGlobal(
		"IntersectionObserver",
		class {
			disconnect = page.disconnect;
			observe = () => undefined;
			constructor(see: Seen) {
				page.see = see;
			}
		},
	);
	return page;
}

afterEach(() => {
	vi.unstubAllGlobals();
	vi.useRealTimers();
});

describe("what is unpacked later", () => {
	const place = {} as Element;

	it("is when the page has nothing else to do, though no reader comes near", () => {
		near();
		const idle: (() => void)[] = [];
		vi.stubGlobal("requestIdleCallback", (take: () => void) => idle.push(take));
		const load = vi.fn();
		whenNear(place, load);
		expect(load).not.toHaveBeenCalled();
		idle[0]?.();
		expect(load).toHaveBeenCalledOnce();
	});

	it("is after a while in a browser that does not say that it has nothing to do, unless it is gone by then", () => {
		const { disconnect } = near();
		vi.useFakeTimers();
		const [kept, gone] = [vi.fn(), vi.fn()];
		whenNear(place, kept);
		whenNear(place, gone)();
		vi.runAllTimers();
		expect(kept).toHaveBeenCalledOnce();
		expect(gone).not.toHaveBeenCalled();
		expect(disconnect).toHaveBeenCalledOnce();
	});

	it("is when a reader comes near", () => {
		const page = near();
		vi.stubGlobal("requestIdleCallback", () => 1);
		const load = vi.fn();
		whenNear(place, load);
		page.see([{ isIntersecting: false }]);
		expect(load).not.toHaveBeenCalled();
		page.see([{ isIntersecting: true }]);
		expect(load).toHaveBeenCalledOnce();
	});
});
