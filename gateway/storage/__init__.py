# SPDX-License-Identifier: Apache-2.0
"""Storage providers: a folder for each one, the registry of all, and their common code.

A provider has its own profile, credential, locations, session policy with a proof, client properties and file client
(`provider.py`). Small files are written, read, listed and deleted with the gateway's own or a given credential.
"""
