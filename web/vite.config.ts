// SPDX-License-Identifier: Apache-2.0
/// <reference types="vitest/config" />
import { defineConfig, type LibraryOptions } from "vite";

// Each bundle is one classic script with one style sheet, put into a page by Python: no module loading and no second
// file, so that a report opens from a disk. A bundle of that kind has one entry, hence a build for each:
// `vite build --mode NAME`.
const bundles: Record<string, LibraryOptions> = {
	// the report; built first, it empties the directory
	report: script("report", "iolabReport"),
	// pages of heat maps
	heatmap: script("heatmap", "iolabHeatmap"),
	// the worksheet that `iolab view` and `iolab live` serve
	live: script("live", "iolabLive"),
	// the start page of `iolab view`
	start: script("start", "iolabStart"),
	// the hosts of an archive
	fleet: script("fleet", "iolabFleet"),
	// maps of a notebook: a module, as anywidget loads it, with its styles inside
	widget: { entry: "src/widget.ts", formats: ["es"], fileName: () => "widget.js" },
};

function script(name: string, global: string): LibraryOptions {
	return { entry: `src/${name}.ts`, formats: ["iife"], name: global, fileName: () => `${name}.js`, cssFileName: name };
}

export default defineConfig(({ mode }) => ({
	define: { "process.env.NODE_ENV": '"production"' },
	// as long as a busy machine takes
	test: { testTimeout: 60_000, setupFiles: ["tests/setup.ts"] },
	oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
	build: {
		outDir: "../python/iolab/output/report/static",
		emptyOutDir: mode === "report",
		target: "es2022",
		cssCodeSplit: false,
		chunkSizeWarningLimit: 1200,
		...(mode in bundles ? { lib: bundles[mode] } : {}),
	},
}));
