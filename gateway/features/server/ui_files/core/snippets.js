// SPDX-License-Identifier: Apache-2.0
// The configuration of each engine for this gateway and one warehouse, and a query of one table. The texts follow
// docs/data-engineer.md, docs/trino.md and docs/engines.md. `tests/e2e/test_console.py` runs those of PyIceberg and DuckDB.

/**
 * @typedef {{catalog: string, warehouse: string, namespace: string[], name: string}} Target
 * @typedef {{engine: string, docs: string, text: (on: Target) => string}} Snippet
 */

/** Quote names of a path for SQL. @param {string[]} levels @param {string} quote */
function sqlPath(levels, quote) {
  return levels.map((each) => (/^[a-z_][a-z0-9_]*$/.test(each) ? each : quote + each.replaceAll(quote, quote + quote) + quote)).join(".");
}

/** @param {Target} on */
function python({ namespace, name }) {
  return JSON.stringify([...namespace, name]).replace("[", "(").replace(/\]$/, ")");
}

/** @type {Snippet[]} */
export const SNIPPETS = [
  {
    engine: "Spark",
    docs: "data-engineer",
    text: ({ catalog, warehouse, namespace, name }) => `# spark-defaults.conf, mode 0600
spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions
spark.sql.catalog.lakegate=org.apache.iceberg.spark.SparkCatalog
spark.sql.catalog.lakegate.type=rest
spark.sql.catalog.lakegate.uri=${catalog}
spark.sql.catalog.lakegate.warehouse=${warehouse}
spark.sql.catalog.lakegate.rest.auth.type=oauth2
spark.sql.catalog.lakegate.token=<bearer token>
spark.sql.catalog.lakegate.token-refresh-enabled=false
spark.sql.catalog.lakegate.header.X-Iceberg-Access-Delegation=vended-credentials
spark.sql.catalog.lakegate.rest-catalog-purge=true

-- then
SELECT * FROM lakegate.${sqlPath([...namespace, name], "`")} LIMIT 10;`,
  },
  {
    engine: "PyIceberg",
    docs: "data-engineer",
    text: ({ catalog, warehouse, ...table }) => `import os
from pyiceberg.catalog import load_catalog

catalog = load_catalog("lakegate", type="rest", uri=${JSON.stringify(catalog)}, warehouse=${JSON.stringify(warehouse)}, token=os.environ["TOKEN"])
catalog.load_table(${python({ catalog, warehouse, ...table })}).scan(limit=10).to_arrow()`,
  },
  {
    engine: "Trino",
    docs: "trino",
    text: ({ catalog, warehouse, namespace, name }) => `# etc/catalog/lakegate.properties
connector.name=iceberg
iceberg.catalog.type=rest
iceberg.rest-catalog.uri=${catalog}
iceberg.rest-catalog.warehouse=${warehouse}
iceberg.rest-catalog.security=OAUTH2
iceberg.rest-catalog.oauth2.token=\${ENV:LAKEGATE_TRINO_TOKEN}
iceberg.rest-catalog.session=USER
iceberg.rest-catalog.vended-credentials-enabled=true
iceberg.rest-catalog.view-endpoints-enabled=true
iceberg.rest-catalog.nested-namespace-enabled=true

-- then
SELECT * FROM lakegate.${namespace.length > 1 ? `"${namespace.join(".")}"` : sqlPath(namespace, '"')}.${sqlPath([name], '"')} LIMIT 10;`,
  },
  {
    engine: "DuckDB",
    docs: "data-engineer",
    text: ({ catalog, warehouse, namespace, name }) => `INSTALL avro; INSTALL httpfs; INSTALL aws; INSTALL iceberg;
LOAD avro; LOAD httpfs; LOAD aws; LOAD iceberg;
CREATE SECRET lakegate (TYPE ICEBERG, TOKEN '<bearer token>');
ATTACH '${warehouse.replaceAll("'", "''")}' AS lakegate (TYPE ICEBERG, ENDPOINT '${catalog}', SECRET lakegate,
                           ACCESS_DELEGATION_MODE 'vended_credentials');
SELECT * FROM lakegate.${sqlPath([...namespace, name], '"')} LIMIT 10;`,
  },
  {
    engine: "Flink",
    docs: "engines",
    text: ({ catalog, warehouse, namespace, name }) => `CREATE CATALOG lakegate WITH (
  'type' = 'iceberg',
  'catalog-type' = 'rest',
  'uri' = '${catalog}',
  'warehouse' = '${warehouse.replaceAll("'", "''")}',
  'rest.auth.type' = 'oauth2',
  'token' = '<token>',
  'token-refresh-enabled' = 'false',
  'header.X-Iceberg-Access-Delegation' = 'vended-credentials',
  'io-impl' = 'org.apache.iceberg.aws.s3.S3FileIO',
  'cache-enabled' = 'false'
);
SELECT * FROM lakegate.${sqlPath([namespace.join("."), name], "`")} LIMIT 10;`,
  },
  {
    engine: "dbt",
    docs: "engines",
    text: ({ catalog, warehouse, namespace }) => `# profiles.yml: dbt with DuckDB
lakegate:
  target: duckdb
  outputs:
    duckdb:
      type: duckdb
      path: ":memory:"
      database: lakegate
      schema: ${JSON.stringify(namespace[0])}
      threads: 1
      disable_transactions: true
      extensions: [avro, httpfs, aws, iceberg]
      secrets:
        - {name: lakegate, type: iceberg, token: "{{ env_var('TOKEN') }}"}
      attach:
        - path: ${JSON.stringify(warehouse)}
          alias: lakegate
          type: iceberg
          secret: lakegate
          options:
            endpoint: ${JSON.stringify(catalog)}
            access_delegation_mode: vended_credentials`,
  },
];
