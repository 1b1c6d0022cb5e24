"""Requests for statistics: their parameters and their answers."""
