# SPDX-License-Identifier: Apache-2.0
"""Doing a study: its runs in order, each leaving evidence, all of it journalled."""
