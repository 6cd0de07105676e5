# SPDX-License-Identifier: Apache-2.0
"""Decisions for policy enforcement points, by the AuthZEN Authorization API 1.0."""
