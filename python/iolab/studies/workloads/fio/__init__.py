# SPDX-License-Identifier: Apache-2.0
"""fio as the workload."""
