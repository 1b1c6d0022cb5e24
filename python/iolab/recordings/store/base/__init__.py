# SPDX-License-Identifier: Apache-2.0
"""The layout of a recording, its metadata, losses, conditions and counts."""
