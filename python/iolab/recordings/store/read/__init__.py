# SPDX-License-Identifier: Apache-2.0
"""Recordings and traces, opened read-only."""
