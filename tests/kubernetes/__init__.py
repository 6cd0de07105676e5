# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes API server with its controllers, for tests of the Helm chart."""
