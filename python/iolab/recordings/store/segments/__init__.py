# SPDX-License-Identifier: Apache-2.0
"""Hot and sealed segments, and their default maps."""
