# SPDX-License-Identifier: Apache-2.0
"""Rules for changes, and when they are decided."""
