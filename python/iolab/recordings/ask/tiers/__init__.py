# SPDX-License-Identifier: Apache-2.0
"""Where answers come from: segment maps, events, counters and traces."""
