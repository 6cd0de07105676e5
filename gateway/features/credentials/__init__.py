# SPDX-License-Identifier: Apache-2.0
"""Storage credentials: vending, remote signing, lists of those not yet expired, and the canary, which tests their
scope.
"""
