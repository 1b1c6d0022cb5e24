# SPDX-License-Identifier: Apache-2.0
"""Layouts of trees: patterns of paths, and their inference from the paths of results."""
