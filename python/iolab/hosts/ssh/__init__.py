# SPDX-License-Identifier: Apache-2.0
"""Hosts that are reached by ssh."""
