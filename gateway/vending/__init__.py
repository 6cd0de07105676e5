# SPDX-License-Identifier: Apache-2.0
"""Credentials that leave the gateway.

Sessions of a store confined to one location, their floor, their cache and their names in the store's logs.
"""
