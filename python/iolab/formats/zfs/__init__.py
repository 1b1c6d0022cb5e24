# SPDX-License-Identifier: Apache-2.0
"""iolab's logs of OpenZFS's counters."""
