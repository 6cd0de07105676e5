# SPDX-License-Identifier: Apache-2.0
"""Values that describe the scope of a storage credential: locations, layouts, access levels and storage profiles.

All storage providers share them. This package opens no socket and does not read the clock. Each provider has its own
profile, its own session policy, and a proof that the policy is right, in `gateway/storage/<provider>/`.
"""
