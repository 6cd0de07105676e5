# SPDX-License-Identifier: Apache-2.0
"""Stores of files: one folder for each provider, the registry that names them, and what they share.

A provider owns its profile, credential, locations, session policy with its proof, properties for clients and file
client (`provider.py`). Small files are written, read, listed and deleted with the gateway's own or a given credential.
"""
