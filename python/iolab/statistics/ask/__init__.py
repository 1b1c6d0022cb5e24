# SPDX-License-Identifier: Apache-2.0
"""Asking: queries, drill-down, attribution, following a recording."""
