# SPDX-License-Identifier: Apache-2.0
"""The tables of the gateway's database. A module has the name of the module of `gateway/db/` with the statements.

Names are stored as written. A column `*_key` contains the NFC-normalised, case-folded form, which is unique
and used for lookups. The database does not fold names, because the embedded PostgreSQL has no ICU. Times are
`timestamptz` of the database's clock. The module `whole` imports all tables.
"""
