# SPDX-License-Identifier: Apache-2.0
"""Users, roles, and what identity providers manage with SCIM."""
