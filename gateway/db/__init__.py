# SPDX-License-Identifier: Apache-2.0
"""The PostgreSQL adapter, with SQLAlchemy Core: schema, statements, the outbox of OpenFGA's tuples, and the door's
resolver.

Every read that resolves an object or decides uses the primary. A read of one statement uses the engine in autocommit
mode. A change opens a transaction that also writes its audit record (`Database.change`).
"""
