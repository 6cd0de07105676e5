# SPDX-License-Identifier: Apache-2.0
"""Write OpenFGA's configuration from the files of the Secret, without the newline that many files end with."""

import json
import sys
from pathlib import Path

secrets = Path(sys.argv[1] if len(sys.argv) > 1 else "/secrets")
target = Path(sys.argv[2] if len(sys.argv) > 2 else "/etc/openfga/config.yaml")
uri, key = (secrets.joinpath(name).read_text().strip() for name in ("OPENFGA_DATASTORE_URI", "OPENFGA__API_KEY"))
if not uri or not key:
    # An empty preshared key would let every client in.
    sys.exit("the keys OPENFGA_DATASTORE_URI and OPENFGA__API_KEY of the Secret must not be empty")
target.write_text(
    json.dumps(
        {
            "datastore": {"engine": "postgres", "uri": uri},
            "authn": {"method": "preshared", "preshared": {"keys": [key]}},
        }
    )
)
