"""The layout of a recording, its metadata, losses, conditions and counts."""
