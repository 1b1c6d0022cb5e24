# SPDX-License-Identifier: Apache-2.0
"""Throughput, latency and limits over a load."""
