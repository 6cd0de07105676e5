# SPDX-License-Identifier: Apache-2.0
"""Define the events of committed changes: the operations that announce them, their content and their schema."""
