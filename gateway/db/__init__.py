# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL through SQLAlchemy Core: the schema, one module of statements per noun, the outbox, and the door's
resolver.

Everything that resolves an object or decides reads the primary. One-statement reads use the engine's autocommit twin;
changes open a transaction that also writes their audit record (`Database.change`).
"""
