"""Alerts: their rules, the watch over them, their log and commands."""
