# SPDX-License-Identifier: Apache-2.0
"""I/O over time: recordings on disk, the recorder, questions, heat maps, the archive."""
