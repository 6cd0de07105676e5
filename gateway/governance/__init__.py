# SPDX-License-Identifier: Apache-2.0
"""Management use cases: warehouses, projects, users, roles, grants, tags, data policies, checks and explanations."""
