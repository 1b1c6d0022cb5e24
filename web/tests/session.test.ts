// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { catalogue, EMPTY, graphOf, recordings, refused, SECOND, sheet, type Worksheet } from "../src/api/worksheet";
import { show } from "../src/worksheet/session";
import { hasTime } from "../src/worksheet/worksheet-url";
import { START, served } from "./fed";

const saved: Worksheet = {
	...EMPTY,
	name: "Mine",
	recording: "rec",
	time: { from: START, until: START + 60 * SECOND },
	graphs: [graphOf("io.ops", "g1")],
};

beforeEach(() => {
	vi.stubGlobal("fetch", async () => new Response(JSON.stringify({ statistics: [{ name: "io.ops" }] })));
});

afterEach(() => {
	vi.unstubAllGlobals();
	[sheet.value, recordings.value, catalogue.value, refused.value] = [EMPTY, [], [], ""];
});

describe("a worksheet of a recording that is not served", () => {
	it("says so, and is no longer the worksheet of that name", async () => {
		recordings.value = [{ ...served, name: "lossy" }];
		await show(saved);
		expect(refused.value).toBe("There is no recording rec here: lossy is shown.");
		expect(sheet.value).toMatchObject({ recording: "lossy", name: "", graphs: [{ statistic: "io.ops" }] });
	});
	it("is what it was where it is served, and names none where it asks for none", async () => {
		recordings.value = [{ ...served, name: "lossy" }, served];
		refused.value = "an older refusal";
		await show(saved);
		expect(sheet.value).toEqual(saved);
		expect(refused.value).toBe("");
		await show({ ...saved, recording: "" });
		expect(sheet.value).toMatchObject({ recording: "lossy", name: "Mine" });
		expect(refused.value).toBe("");
	});
});

describe("the time of a recording that has ended", () => {
	it("is all of it where none was asked for, and else what was asked for", async () => {
		recordings.value = [served];
		const last: Worksheet = { ...saved, time: { live: 60 } };
		await show(last);
		expect(sheet.value.time).toEqual({ live: 60 });
		await show(last, false);
		expect(sheet.value.time).toEqual({ from: served.first_ns, until: (served.last_ns ?? 0) + 1 });
	});
	it("is in an address with a length or two moments", () => {
		const addresses = ["#recording=rec&last=60", "?from=1&to=2", "#recording=rec&from=1", ""];
		expect(addresses.map(hasTime)).toEqual([true, true, false, false]);
	});
});
