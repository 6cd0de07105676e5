-- SPDX-License-Identifier: Apache-2.0
-- Runs once, when the volume is empty. Creates a role and a database for each service; no role can connect to another
-- service's database. Passwords are in the environment of the container, so that no process list shows them.
\set ON_ERROR_STOP on
\getenv lakegate_password LAKEGATE_DB_PASSWORD
\getenv openfga_password OPENFGA_DB_PASSWORD
\getenv keycloak_password KEYCLOAK_DB_PASSWORD
CREATE ROLE lakegate LOGIN PASSWORD :'lakegate_password';
CREATE ROLE openfga LOGIN PASSWORD :'openfga_password';
CREATE ROLE keycloak LOGIN PASSWORD :'keycloak_password';
CREATE DATABASE lakegate OWNER lakegate;
CREATE DATABASE openfga OWNER openfga;
CREATE DATABASE keycloak OWNER keycloak;
REVOKE CONNECT, TEMPORARY ON DATABASE lakegate, openfga, keycloak FROM PUBLIC;
