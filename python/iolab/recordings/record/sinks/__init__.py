# SPDX-License-Identifier: Apache-2.0
"""From the probe's frames to the recording."""
