# SPDX-License-Identifier: Apache-2.0
"""Values that describe the scope of a storage credential: locations, layouts, access levels and storage profiles.

All storage providers share them. This package opens no socket and does not read the clock. Each provider has its own
profile, session policy and proof of the policy in `gateway/storage/<provider>/`.
"""
