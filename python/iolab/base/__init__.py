# SPDX-License-Identifier: Apache-2.0
"""What every other wing uses: units, errors, files, verdicts, clocks, plugins, statistics of arrays."""
