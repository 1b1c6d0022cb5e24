"""Reports of served results, and worksheets shared as one file."""
