# SPDX-License-Identifier: Apache-2.0
"""Importing trees of other people's files, and published tables."""
