# SPDX-License-Identifier: Apache-2.0
"""Where commands run: a host starts programs, reads files and reports facts about itself."""
