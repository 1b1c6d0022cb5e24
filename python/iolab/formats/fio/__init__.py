# SPDX-License-Identifier: Apache-2.0
"""Files of fio: JSON, terse output, logs."""
