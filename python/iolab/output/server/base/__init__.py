# SPDX-License-Identifier: Apache-2.0
"""Values, documents and stores that every part of the service uses."""
