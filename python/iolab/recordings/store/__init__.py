# SPDX-License-Identifier: Apache-2.0
"""What was recorded of I/O: a trace file opens as one, read-only. Events stay in the native core;
what comes out is counted."""
