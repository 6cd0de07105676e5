# SPDX-License-Identifier: Apache-2.0
"""Provide libraries for clients of Lakegate. They use HTTP only and import nothing of the gateway."""
