# SPDX-License-Identifier: Apache-2.0
"""Questions to what was recorded: their names, what can be asked, and the one executor that
answers."""
