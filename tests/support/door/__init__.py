# SPDX-License-Identifier: Apache-2.0
"""The door in the process of a test: its objects, applications, and examples of every operation."""
