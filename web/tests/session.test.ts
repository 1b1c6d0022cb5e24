// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { catalogue, EMPTY, graphOf, recordings, refused, SECOND, sheet, type Worksheet } from "../src/api/worksheet";
import { show } from "../src/worksheet/session";
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
