# SPDX-License-Identifier: Apache-2.0
"""A picture as the workload."""
