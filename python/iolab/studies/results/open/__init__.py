# SPDX-License-Identifier: Apache-2.0
"""Opened results: runs, caches, several hosts, profiles."""
