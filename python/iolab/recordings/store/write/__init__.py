# SPDX-License-Identifier: Apache-2.0
"""The writer of a recording: import, recovery and retention."""
