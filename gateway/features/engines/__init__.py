# SPDX-License-Identifier: Apache-2.0
"""Engines that act for users: the token exchange, and probes, which test whether an engine enforces restrictions."""
