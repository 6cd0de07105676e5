# SPDX-License-Identifier: Apache-2.0
"""Storage credentials: vending, remote signing, the list of live ones, and the canary, which tests their scope."""
