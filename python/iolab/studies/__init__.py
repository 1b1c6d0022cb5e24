# SPDX-License-Identifier: Apache-2.0
"""Studies: what is compared, under which load, the runs, their results, their comparison."""
