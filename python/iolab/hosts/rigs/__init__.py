# SPDX-License-Identifier: Apache-2.0
"""Rigs: recipes that yield a host. A throw-away virtual machine is built once, started with disks
of a chosen speed, and thrown away."""
