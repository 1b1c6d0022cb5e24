# SPDX-License-Identifier: Apache-2.0
"""Facts about a host: CPU, memory, kernel, block devices, controllers."""
