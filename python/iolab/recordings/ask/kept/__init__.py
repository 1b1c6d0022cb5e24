# SPDX-License-Identifier: Apache-2.0
"""Kept statistics: answers that outlive the events they were made of, by the second, minute and
hour."""
