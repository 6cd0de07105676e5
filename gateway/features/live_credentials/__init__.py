# SPDX-License-Identifier: Apache-2.0
"""The register of issued credentials that have not expired."""
