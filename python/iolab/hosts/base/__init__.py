# SPDX-License-Identifier: Apache-2.0
"""What a host is, and helpers of every kind of host."""
