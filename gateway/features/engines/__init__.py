# SPDX-License-Identifier: Apache-2.0
"""Engines that act for users: exchange of tokens, and probes of what they enforce."""
