# SPDX-License-Identifier: Apache-2.0
"""Commands that measure: studies, builds, rigs."""
