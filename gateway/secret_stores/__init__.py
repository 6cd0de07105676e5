# SPDX-License-Identifier: Apache-2.0
"""Secret stores, which contain the storage credentials of warehouses.

`port` declares the interface of a store. `vault` and `vault_session` implement it for HashiCorp Vault. The store in
PostgreSQL is `gateway.db.credentials.stored_secrets`. `gateway.assembly.secret_stores` opens the stores that the
settings name.
"""
