# SPDX-License-Identifier: Apache-2.0
"""The whole stack on one machine, for a first look and for the tests.

PostgreSQL, OpenFGA, OPA, an object store, an identity provider and the gateway run as child processes on free loopback
ports, with their data in one directory. A supervisor process owns them and takes them down when whoever started it is
gone, however it went.
"""
