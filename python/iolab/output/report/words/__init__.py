# SPDX-License-Identifier: Apache-2.0
"""Text of the report that is made from numbers."""
