# SPDX-License-Identifier: Apache-2.0
"""Alerts: their rules, the watch over them, their log and commands."""
