# SPDX-License-Identifier: Apache-2.0
"""Storage credentials: vending, remote signing, the register of live credentials, and the canary (the test of their
scope).
"""
