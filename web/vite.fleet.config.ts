// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vite";
import report from "./vite.config.ts";

// The fleet page of iolab view, a fifth classic script.
export default defineConfig({
	...report,
	build: {
		...report.build,
		emptyOutDir: false,
		lib: {
			entry: "src/fleet.ts",
			formats: ["iife"],
			name: "iolabFleet",
			fileName: () => "fleet.js",
			cssFileName: "fleet",
		},
	},
});
