# SPDX-License-Identifier: Apache-2.0
"""Statistics: calls of endpoints, numbers of tables and views, and metrics reports of engines."""
