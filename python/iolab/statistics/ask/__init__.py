"""Asking: queries, drill-down, attribution, following a recording."""
