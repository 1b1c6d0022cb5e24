// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vite";
import report from "./vite.config.ts";

// The start page of iolab view, a fourth classic script.
export default defineConfig({
	...report,
	build: {
		...report.build,
		emptyOutDir: false,
		lib: {
			entry: "src/start.ts",
			formats: ["iife"],
			name: "iolabStart",
			fileName: () => "start.js",
			cssFileName: "start",
		},
	},
});
