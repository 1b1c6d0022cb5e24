# SPDX-License-Identifier: Apache-2.0
"""From factors and variants to cells and runs."""
