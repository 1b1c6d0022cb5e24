# SPDX-License-Identifier: Apache-2.0
"""Heat maps of I/O: counts in; pictures, characters or a page's data out. Light: nothing of
scipy."""
