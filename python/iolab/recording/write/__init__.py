"""The writer of a recording: import, recovery and retention."""
