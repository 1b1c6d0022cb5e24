"""Statistics: arrays in, values out. Knows no file format, no run and no metric."""
