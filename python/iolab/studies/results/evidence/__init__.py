# SPDX-License-Identifier: Apache-2.0
"""The files of a results directory: evidence, plan, journal, manifest, marks, lock."""
