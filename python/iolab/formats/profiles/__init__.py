# SPDX-License-Identifier: Apache-2.0
"""Profiles: perf script and folded stacks."""
