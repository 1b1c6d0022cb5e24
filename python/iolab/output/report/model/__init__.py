# SPDX-License-Identifier: Apache-2.0
"""The documents that the report's pages are given."""
