# SPDX-License-Identifier: Apache-2.0
"""What is shown: charts, the report, the service with its pages."""
