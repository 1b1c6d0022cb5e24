// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { dayOf, timeTicks } from "../src/canvas/clock";
import { toggleZone, zone, zoneWords } from "../src/lib/zone";
import { momentWords, spanWords } from "../src/worksheet/times";

const H = 3600e9;
const MIDNIGHT = 1_700_006_400e9;

beforeEach(() => {
	vi.spyOn(Date.prototype, "getTimezoneOffset").mockReturnValue(-330);
});

afterEach(() => {
	zone.value = "UTC";
	vi.restoreAllMocks();
});

describe("times of day", () => {
	it("are UTC until local ones are chosen", () => {
		expect(momentWords(MIDNIGHT)).toBe("2023-11-15 00:00:00");
		toggleZone();
		expect(zoneWords(MIDNIGHT / 1e6)).toBe("UTC+05:30");
		expect(momentWords(MIDNIGHT)).toBe("2023-11-15 05:30:00");
		expect(spanWords({ from: MIDNIGHT, until: MIDNIGHT + H })).toContain("UTC+05:30");
		toggleZone();
		expect(zoneWords()).toBe("UTC");
	});

	it("have marks at whole hours of the zone, and its days", () => {
		const labels = () => timeTicks(MIDNIGHT, 0, 24 * H, 5).map((tick) => [tick.value / H, tick.label]);
		expect(labels()).toContainEqual([0, "15 Nov"]);
		toggleZone();
		// local midnight is 18.5 hours later
		expect(labels()).toContainEqual([18.5, "16 Nov"]);
		expect(labels()).toContainEqual([0.5, "06:00"]);
		expect(dayOf(MIDNIGHT + 19 * H)).toBe("16 Nov");
	});

	it("of clocks with a start of their own have no zone", () => {
		toggleZone();
		expect(momentWords(5e9, 1e9, 1e9)).toBe("4 s");
		expect(spanWords({ from: 0, until: 1e9 })).not.toContain("UTC");
	});
});
