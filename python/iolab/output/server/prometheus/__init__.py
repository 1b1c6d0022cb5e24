# SPDX-License-Identifier: Apache-2.0
"""The /metrics endpoint, as text and protobuf."""
