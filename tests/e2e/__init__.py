# SPDX-License-Identifier: Apache-2.0
"""End-to-end tests of real engines against the whole stack. As a package, its fixtures end with its last test."""
