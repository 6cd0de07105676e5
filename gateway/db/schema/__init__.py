# SPDX-License-Identifier: Apache-2.0
"""The tables of the gateway's database, one module per noun, named as the module of `gateway/db/` with its statements.

Names are kept as written, with a `*_key` column beside them: the NFC-normalised, case-folded form that is unique and
looked up (decision 3 of the design; the embedded PostgreSQL has no ICU). Times are `timestamptz` from the database's
clock. Whoever needs all tables at once imports `whole`.
"""
