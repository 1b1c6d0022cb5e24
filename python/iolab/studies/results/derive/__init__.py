# SPDX-License-Identifier: Apache-2.0
"""From evidence to observations and verdicts, for single runs, steps and windows."""
