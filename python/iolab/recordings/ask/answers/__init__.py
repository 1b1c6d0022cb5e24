# SPDX-License-Identifier: Apache-2.0
"""Answers of statistics, and their forms as JSON, CSV and lines."""
