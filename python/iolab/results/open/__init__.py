"""Opened results: runs, caches, several hosts, profiles."""
