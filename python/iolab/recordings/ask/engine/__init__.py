# SPDX-License-Identifier: Apache-2.0
"""The query engine over a snapshot of a recording: SQL, windows of time, coverage."""
