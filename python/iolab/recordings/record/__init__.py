# SPDX-License-Identifier: Apache-2.0
"""Recording: the probe's frames taken in by one writer, without root, under a budget, until it is
stopped."""
