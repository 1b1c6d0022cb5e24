"""Profiles: perf script and folded stacks."""
