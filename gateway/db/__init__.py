# SPDX-License-Identifier: Apache-2.0
"""The PostgreSQL adapter, with SQLAlchemy Core: the schema, statements, and the outbox of tuples for OpenFGA.

Every read that finds the objects of a request or decides about them uses the primary. A read of one statement uses the
engine in autocommit mode. A change opens a transaction that also writes its audit record (`Database.change`).
"""
