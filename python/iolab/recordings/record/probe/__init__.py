# SPDX-License-Identifier: Apache-2.0
"""The probe as a process."""
