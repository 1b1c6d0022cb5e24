# SPDX-License-Identifier: Apache-2.0
"""The report: one HTML file with everything in it, drawn from comparisons, charts and runs; it
computes nothing of its own."""
