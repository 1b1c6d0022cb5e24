"""Importing trees of other people's files, and published tables."""
