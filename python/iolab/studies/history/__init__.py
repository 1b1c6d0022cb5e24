# SPDX-License-Identifier: Apache-2.0
"""Results over time: a history of results directories, an index of their values, and the changes in
it."""
