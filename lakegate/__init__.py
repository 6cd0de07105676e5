# SPDX-License-Identifier: Apache-2.0
"""Provide what is not the gateway: clients of it, the stack on one machine, and the kits for extensions."""
