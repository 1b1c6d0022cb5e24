"""Answers of statistics, and their forms as JSON, CSV and lines."""
