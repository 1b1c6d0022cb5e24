// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vite";
import report from "./vite.config.ts";

// The page that iolab view and iolab live serve, a third classic script.
export default defineConfig({
	...report,
	build: {
		...report.build,
		emptyOutDir: false,
		lib: {
			entry: "src/live.ts",
			formats: ["iife"],
			name: "iolabLive",
			fileName: () => "live.js",
			cssFileName: "live",
		},
	},
});
