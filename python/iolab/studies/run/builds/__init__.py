# SPDX-License-Identifier: Apache-2.0
"""Builds and kernels under test."""
