// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vite";
import report from "./vite.config.ts";

// The page of heat maps, a second classic script beside the report's: a bundle of that kind has one entry.
export default defineConfig({
	...report,
	build: {
		...report.build,
		emptyOutDir: false,
		lib: {
			entry: "src/heatmap.ts",
			formats: ["iife"],
			name: "iolabHeatmap",
			fileName: () => "heatmap.js",
			cssFileName: "heatmap",
		},
	},
});
