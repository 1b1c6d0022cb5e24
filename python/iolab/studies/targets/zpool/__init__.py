# SPDX-License-Identifier: Apache-2.0
"""ZFS pools as the target."""
