"""Recordings and traces, opened read-only."""
