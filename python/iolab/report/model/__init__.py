"""The documents that the report's pages are given."""
