# SPDX-License-Identifier: Apache-2.0
"""Servers that tests start: real ones, emulators, and proxies that simulate failures."""
