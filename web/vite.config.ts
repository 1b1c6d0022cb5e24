// SPDX-License-Identifier: Apache-2.0
/// <reference types="vitest/config" />
import { defineConfig } from "vite";

// One classic script and one style sheet, put into the report by Python: no module loading, no second file.
export default defineConfig({
	define: { "process.env.NODE_ENV": '"production"' },
	// as long as a busy machine takes
	test: { testTimeout: 60_000, setupFiles: ["tests/setup.ts"] },
	oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
	build: {
		outDir: "../python/iolab/output/report/static",
		emptyOutDir: true,
		target: "es2022",
		cssCodeSplit: false,
		chunkSizeWarningLimit: 1200,
		lib: {
			entry: "src/report.ts",
			formats: ["iife"],
			name: "iolabReport",
			fileName: () => "report.js",
			cssFileName: "report",
		},
	},
});
