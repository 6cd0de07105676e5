-- SPDX-License-Identifier: Apache-2.0
-- Runs once, when the volume is empty. Creates a role and a database for the gateway and for OpenFGA; no role can connect to
-- the other's database. Passwords are in the environment of the container.
\set ON_ERROR_STOP on
\getenv lakegate_password LAKEGATE_DB_PASSWORD
\getenv openfga_password OPENFGA_DB_PASSWORD
CREATE ROLE lakegate LOGIN PASSWORD :'lakegate_password';
CREATE ROLE openfga LOGIN PASSWORD :'openfga_password';
CREATE DATABASE lakegate OWNER lakegate;
CREATE DATABASE openfga OWNER openfga;
REVOKE CONNECT, TEMPORARY ON DATABASE lakegate, openfga FROM PUBLIC;
