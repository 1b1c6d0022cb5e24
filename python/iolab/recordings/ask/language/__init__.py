# SPDX-License-Identifier: Apache-2.0
"""The language of statistics: names, fields, conditions, times and the catalogue."""
