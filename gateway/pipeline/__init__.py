# SPDX-License-Identifier: Apache-2.0
"""The medallion pipeline: PySpark jobs that read and write the lakehouse through the gateway.

This is an ordinary client. It has its own identity (a bearer token or client credentials), speaks to the
catalog over HTTP only, holds no key of the object store, and imports nothing else of the gateway: whatever it
may do was decided at the same door everybody else goes through.
"""
