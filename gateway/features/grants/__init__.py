# SPDX-License-Identifier: Apache-2.0
"""Grants, managed access, and checks of permissions."""
