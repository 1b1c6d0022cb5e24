# SPDX-License-Identifier: Apache-2.0
"""Tables that readers yield, text decoding, and detection of formats."""
