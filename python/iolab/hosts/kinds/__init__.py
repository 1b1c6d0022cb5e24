# SPDX-License-Identifier: Apache-2.0
"""The kinds of hosts, and how a command line names them."""
