# SPDX-License-Identifier: Apache-2.0
"""What a credential may reach, as pure values that every provider of storage shares: locations, layouts, access levels,
and what a storage profile is.

Nothing here opens a socket or reads the clock. Each provider has its own profile, session policy and proof in
`gateway/storage/<provider>/`.
"""
