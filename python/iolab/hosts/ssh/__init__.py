"""Hosts that are reached by ssh."""
