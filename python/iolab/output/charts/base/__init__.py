# SPDX-License-Identifier: Apache-2.0
"""What charts share: axes, colours, pictures."""
