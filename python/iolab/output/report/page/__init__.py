# SPDX-License-Identifier: Apache-2.0
"""Self-contained HTML files."""
