# SPDX-License-Identifier: Apache-2.0
"""What a report shows first: its quantities, their cards, cells and sentences, and cautions."""
