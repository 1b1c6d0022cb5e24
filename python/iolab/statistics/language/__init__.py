"""The language of statistics: names, fields, conditions, times and the catalogue."""
