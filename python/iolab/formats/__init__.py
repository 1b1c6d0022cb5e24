# SPDX-License-Identifier: Apache-2.0
"""Bytes in, tables out: one file per format, pure, knowing no run and no study."""
