# SPDX-License-Identifier: Apache-2.0
"""Record real requests and answers as the examples of the OpenAPI document: `make api-examples`."""
