# SPDX-License-Identifier: Apache-2.0
"""What a run leaves: recordings and logs."""
