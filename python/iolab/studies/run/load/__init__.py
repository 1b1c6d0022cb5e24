# SPDX-License-Identifier: Apache-2.0
"""The load of a run, and what is observed meanwhile."""
