"""The files of a results directory: evidence, plan, journal, manifest, marks, lock."""
