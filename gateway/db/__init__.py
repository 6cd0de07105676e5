# SPDX-License-Identifier: Apache-2.0
"""The PostgreSQL adapter, with SQLAlchemy Core: the schema, the statements of each noun, the outbox, and the door's
resolver.

Every read that resolves an object or decides uses the primary. A read of one statement uses the engine in autocommit
mode. A change opens a transaction that also writes its audit record (`Database.change`).
"""
