"""The query engine over a snapshot of a recording: SQL, windows of time, coverage."""
