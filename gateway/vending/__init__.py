# SPDX-License-Identifier: Apache-2.0
"""Credential vending: sessions of a store that are confined to one location.

Checks the minimum lifetime, caches the sessions, and names them for the store's logs.
"""
