# SPDX-License-Identifier: Apache-2.0
"""Pushing into archives."""
