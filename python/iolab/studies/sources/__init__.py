# SPDX-License-Identifier: Apache-2.0
"""What is watched while a load runs: a source yields records while time passes."""
