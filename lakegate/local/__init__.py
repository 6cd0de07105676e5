# SPDX-License-Identifier: Apache-2.0
"""The whole stack on one machine, for a first look and for the tests.

PostgreSQL, OpenFGA, OPA, an object store, an identity provider and the gateway run as child processes on free loopback
ports. Their data are in one directory. A supervisor process owns the children. It stops them when its parent process
ends for any reason, including SIGKILL.
"""
