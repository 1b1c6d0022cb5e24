"""From evidence to observations and verdicts, for single runs, steps and windows."""
