# SPDX-License-Identifier: Apache-2.0
"""Reports of served results, and worksheets shared as one file."""
