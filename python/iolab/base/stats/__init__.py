# SPDX-License-Identifier: Apache-2.0
"""Statistics: arrays in, values out. Knows no file format, no run and no metric."""
