// SPDX-License-Identifier: Apache-2.0
// The stores of warehouses: the fields of their profiles and credentials, with descriptions and defaults.

/**
 * `more` marks fields that are folded at first. `kind` is "number" for whole numbers.
 * @typedef {import("./forms.js").Field & {more?: boolean, kind?: "number"}} StoreField
 * @typedef {{label: string, fields: StoreField[]}} CredentialKind
 * @typedef {{label: string, type: string, help: string, fixed?: Record<string, unknown>, profile: StoreField[], credentials: Record<string, CredentialKind>}} StoreKind
 */

/** @type {StoreField} */
const PREFIX = { name: "key-prefix", label: "Folder in the bucket", help: "All files of the warehouse are below it. Empty: the whole bucket. Two warehouses cannot share a folder." };
/** @type {StoreField} */
const LAYOUT = {
  name: "storage-layout",
  label: "Folders of tables",
  more: true,
  help: "The names of the folders for new tables. Names help people that look into the store; the id keeps folders apart.",
  options: [
    ["default", "the id of the table"],
    ["tabular-only", "name and id of the table"],
    ["full-hierarchy", "namespaces, then name and id of the table"],
  ],
};
/** The layouts of these options. @type {Record<string, Record<string, string>>} */
export const LAYOUTS = {
  default: { type: "default" },
  "tabular-only": { type: "tabular-only", tabular: "{name}-{uuid}" },
  "full-hierarchy": { type: "full-hierarchy", namespace: "{name}-{uuid}", tabular: "{name}-{uuid}" },
};
/** @type {StoreField[]} */
const S3_MORE = [
  { name: "sts-token-validity-seconds", label: "Credentials are valid for (seconds)", kind: "number", type: "number", value: "3600", more: true, help: "From 900 to 43200. After a revocation, issued credentials stay valid for at most this time." },
  { name: "remote-signing-enabled", label: "Sign requests for clients", type: "checkbox", value: "true", more: true, help: "Clients can send single requests to be signed, instead of holding credentials." },
  { name: "push-s3-delete-disabled", label: "Keep clients from deleting files of dropped tables", type: "checkbox", value: "true", more: true, help: "With soft deletion, Spark would otherwise delete the files of a table that can be restored." },
  { name: "allow-alternative-protocols", label: "Accept s3a:// and s3n://", type: "checkbox", more: true, help: "For tables that older clients wrote." },
  LAYOUT,
];
/** @type {StoreField} */
const BUCKET = { name: "bucket", label: "Bucket", required: true, help: "It must exist." };
/** @type {StoreField} */
const STS = { name: "sts-enabled", label: "Issue credentials to clients", type: "checkbox", value: "true", help: "Each client gets temporary keys for the folder of its table only. Without it, clients need signed requests or keys of their own." };
/** @type {StoreField[]} */
const KEYS = [
  { name: "access-key-id", label: "Access key id", required: true },
  { name: "secret-access-key", label: "Secret access key", type: "password", required: true, help: "It is stored encrypted, and is never shown again." },
];
/** @type {StoreField} */
const EXTERNAL = { name: "external-id", label: "External id", help: "Sent when the role is assumed, if the role's trust policy demands one. Empty: none." };
/** @type {StoreField} */
const ENDPOINT = { name: "endpoint", label: "Endpoint", required: true, help: "The address of the store, with https." };
/** @type {StoreField} */
const ROLE = { name: "sts-role-arn", label: "Role of clients (ARN)", help: "The role whose sessions clients get. The gateway limits each session to one folder." };

/** All stores, by the value in the form. @type {Record<string, StoreKind>} */
export const STORES = {
  aws: {
    label: "Amazon S3",
    type: "s3",
    help: "A bucket in AWS. Clients get sessions of a role that are limited to the folder of one table.",
    fixed: { flavor: "aws" },
    profile: [
      BUCKET,
      { name: "region", label: "Region", required: true, value: "eu-central-1" },
      PREFIX, STS, ROLE,
      { name: "assume-role-arn", label: "Role of the gateway (ARN)", more: true, help: "A role that the gateway assumes for its own files. Empty: it uses the credential itself." },
      { name: "aws-kms-key-arn", label: "Encryption key (ARN)", more: true, help: "New files are encrypted with this key of KMS. Empty: as the bucket says." },
      { name: "endpoint", label: "Endpoint", more: true, help: "Only for a private endpoint. Empty: AWS's own." },
      ...S3_MORE,
    ],
    credentials: {
      "access-key": { label: "access key", fields: [...KEYS, EXTERNAL] },
      "aws-system-identity": { label: "the gateway's own identity", fields: [EXTERNAL] },
    },
  },
  compatible: {
    label: "S3-compatible store (MinIO, Ceph …)",
    type: "s3",
    help: "A store that speaks the protocol of S3 at an address of its own.",
    fixed: { flavor: "s3-compat" },
    profile: [
      BUCKET, ENDPOINT,
      { name: "region", label: "Region", required: true, value: "us-east-1", help: "Part of the signature; many stores accept any." },
      PREFIX,
      { name: "path-style-access", label: "Bucket in the path", type: "checkbox", value: "true", help: "Most stores of one's own need it; otherwise the bucket is part of the host name." },
      STS, ROLE,
      { name: "sts-endpoint", label: "Address for sessions (STS)", more: true, help: "Empty: the endpoint." },
      ...S3_MORE,
    ],
    credentials: { "access-key": { label: "access key", fields: [...KEYS, EXTERNAL] } },
  },
  r2: {
    label: "Cloudflare R2",
    type: "s3",
    help: "A bucket of Cloudflare. An API token creates the credentials of clients.",
    fixed: { flavor: "s3-compat" },
    profile: [BUCKET, ENDPOINT, { name: "region", label: "Region", required: true, value: "auto" }, PREFIX, STS, ...S3_MORE],
    credentials: {
      "cloudflare-r2": {
        label: "API token",
        fields: [...KEYS, { name: "token", label: "API token", type: "password", required: true }, { name: "account-id", label: "Account id", required: true }],
      },
    },
  },
  oss: {
    label: "Alibaba Cloud OSS",
    type: "s3",
    help: "A bucket of Alibaba Cloud. Clients get sessions of a role.",
    fixed: { flavor: "s3-compat" },
    profile: [BUCKET, ENDPOINT, { name: "region", label: "Region", required: true }, PREFIX, STS, ROLE, ...S3_MORE],
    credentials: { "aliyun-oss": { label: "key pair", fields: [...KEYS, EXTERNAL] } },
  },
  adls: {
    label: "Azure Data Lake Storage",
    type: "adls",
    help: "A container of a storage account with hierarchical namespace. Clients get signatures for one directory.",
    profile: [
      { name: "account-name", label: "Storage account", required: true, help: "3 to 24 lower-case letters and digits." },
      { name: "filesystem", label: "Container", required: true },
      PREFIX,
      { name: "sas-enabled", label: "Issue signatures to clients", type: "checkbox", value: "true", help: "Each client gets a signature for the directory of its table only." },
      { name: "sas-token-validity-seconds", label: "Signatures are valid for (seconds)", kind: "number", type: "number", value: "3600", more: true, help: "From 60 to 604800." },
      { name: "host", label: "Host", more: true, help: "Empty: dfs.core.windows.net, the public cloud." },
      { name: "authority-host", label: "Address of the sign-in", more: true, help: "Empty: login.microsoftonline.com." },
      { name: "allow-alternative-protocols", label: "Accept abfs:// and wasbs://", type: "checkbox", more: true },
      LAYOUT,
    ],
    credentials: {
      "client-credentials": {
        label: "application (client secret)",
        fields: [
          { name: "tenant-id", label: "Tenant id", required: true },
          { name: "client-id", label: "Application id", required: true },
          { name: "client-secret", label: "Client secret", type: "password", required: true },
        ],
      },
      "shared-access-key": { label: "account key", fields: [{ name: "key", label: "Account key", type: "password", required: true, help: "Signatures by it cannot be revoked one by one." }] },
      "azure-system-identity": { label: "the gateway's own identity", fields: [] },
    },
  },
  gcs: {
    label: "Google Cloud Storage",
    type: "gcs",
    help: "A bucket of Google Cloud. Clients get tokens that are limited to the folder of one table.",
    profile: [BUCKET, PREFIX, STS, LAYOUT],
    credentials: {
      "service-account-key": { label: "service account key", fields: [{ name: "key", label: "Key file (JSON)", type: "text-area", required: true, help: "The content of the JSON file of the service account." }] },
      "gcp-system-identity": { label: "the gateway's own identity", fields: [] },
    },
  },
  local: {
    label: "Local directory",
    type: "local",
    help: "A directory of the gateway's machine, below one that the operator lists. For trials: clients open the files themselves.",
    profile: [{ name: "directory", label: "Directory", required: true, help: "An absolute path." }, LAYOUT],
    credentials: {},
  },
  hdfs: {
    label: "HDFS",
    type: "hdfs",
    help: "A directory of a Hadoop cluster, below one that the operator lists. Clients open the files with their own identity.",
    profile: [{ name: "location", label: "Location", required: true, help: "Such as hdfs:, two slashes, name-node:8020/lake." }, LAYOUT],
    credentials: {},
  },
};

/** Return the store of a stored profile. @param {any} profile @param {string} [credential] */
export function storeOf(profile, credential) {
  if (profile.type !== "s3") {
    return profile.type;
  }
  const special = /** @type {Record<string, string>} */ ({ "cloudflare-r2": "r2", "aliyun-oss": "oss" })[credential ?? ""];
  return special ?? (profile.flavor === "aws" ? "aws" : "compatible");
}
