# SPDX-License-Identifier: Apache-2.0
"""End-to-end tests of real engines against the whole stack. It is a package so that its fixtures end with its last
test.
"""
