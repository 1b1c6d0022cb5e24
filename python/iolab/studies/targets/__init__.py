# SPDX-License-Identifier: Apache-2.0
"""What is measured: a place that a workload writes to, with the block devices behind it."""
