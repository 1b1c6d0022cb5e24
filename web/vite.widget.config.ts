// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vite";
import report from "./vite.config.ts";

// The maps of a notebook: a module, as anywidget loads it, with its styles inside.
export default defineConfig({
	...report,
	build: {
		...report.build,
		emptyOutDir: false,
		lib: { entry: "src/widget.ts", formats: ["es"], fileName: () => "widget.js" },
	},
});
