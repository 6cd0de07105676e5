# SPDX-License-Identifier: Apache-2.0
"""Credential vending: open sessions of a store that are limited to one location.

The package checks the minimum lifetime, caches the sessions, and gives them names that appear in the store's logs.
"""
