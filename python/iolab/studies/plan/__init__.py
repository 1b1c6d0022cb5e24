# SPDX-License-Identifier: Apache-2.0
"""What to compare under which load: one TOML file, read, checked and laid out as a plan of runs."""
