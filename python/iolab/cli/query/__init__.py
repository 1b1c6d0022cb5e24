# SPDX-License-Identifier: Apache-2.0
"""Commands that ask recordings and traces."""
