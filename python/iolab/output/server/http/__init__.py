# SPDX-License-Identifier: Apache-2.0
"""The application: routes, access policy, actions, compression, and the server process."""
