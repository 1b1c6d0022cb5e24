# SPDX-License-Identifier: Apache-2.0
"""What the evidence of one run says, as facts, metrics and series."""
