# SPDX-License-Identifier: Apache-2.0
"""How a study ends early and continues."""
