# SPDX-License-Identifier: Apache-2.0
"""Requests for statistics: their parameters and their answers."""
