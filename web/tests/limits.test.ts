// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { changesOf } from "../src/worksheet/dialogs/kept-limits";

const DAY = 86_400;
const limits = {
	bytes: 1234567891,
	cpu_share: 0.05,
	retention: { "1s": 7 * DAY, "1m": 14 * DAY, "1h": 90 * DAY },
	used_bytes: 5,
	pending: false,
};

describe("limits that are set", () => {
	it("are those that were changed", () => {
		expect(changesOf(limits, {})).toEqual({ retention: {} });
		expect(changesOf(limits, { "1h": "400" })).toEqual({ retention: { "1h": 400 * DAY } });
		expect(changesOf(limits, { bytes: "2", cpu: "2.5" })).toEqual({
			bytes: 2 ** 31,
			cpu_share: 0.025,
			retention: {},
		});
	});
	it("have no end where their blank is empty", () => {
		expect(changesOf(limits, { bytes: "", cpu: "" })).toEqual({ bytes: null, cpu_share: null, retention: {} });
	});
	it("are not those that read as before, whatever was rounded", () => {
		expect(changesOf(limits, { bytes: "1.14978", cpu: "5", "1s": "7" })).toEqual({ retention: {} });
	});
});
