# SPDX-License-Identifier: Apache-2.0
"""What drives a target: a workload says what it needs, what it will do, and the command that does
it."""
