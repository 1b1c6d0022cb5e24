# SPDX-License-Identifier: Apache-2.0
"""The service that shows recordings and traces to a browser and to programs that have the token.

Recordings are only read. Worksheets, alerts and their log are written, and kept statistics are
changed by the writer's own commands; see `docs/decisions/0010-what-the-service-writes.md`. The one
place with `async`.
"""
