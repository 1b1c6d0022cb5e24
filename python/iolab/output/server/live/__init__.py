# SPDX-License-Identifier: Apache-2.0
"""The live stream of server-sent events."""
