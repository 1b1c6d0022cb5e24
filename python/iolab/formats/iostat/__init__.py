# SPDX-License-Identifier: Apache-2.0
"""Output of iostat, of sysstat, illumos and FreeBSD."""
