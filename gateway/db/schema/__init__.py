# SPDX-License-Identifier: Apache-2.0
"""The tables of the gateway's database, one module per noun, named as the module of `gateway/db/` with its statements.

Names are kept as written, with a `*_key` column beside them: the NFC-normalised, case-folded form that is unique and
looked up. The database does not fold names itself, because the embedded PostgreSQL has no ICU. Times are `timestamptz`
from the database's clock. Import `whole` to have all tables at once.
"""
