# SPDX-License-Identifier: Apache-2.0
"""Storage credentials: vending, remote signing, the register of live ones, and the canary of stores."""
