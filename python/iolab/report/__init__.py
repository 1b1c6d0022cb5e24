"""The report: one HTML file with everything in it, drawn from comparisons, charts and runs; it
computes nothing of its own."""
