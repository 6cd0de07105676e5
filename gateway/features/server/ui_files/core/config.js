// SPDX-License-Identifier: Apache-2.0
// The configuration that the gateway writes into the page: the sign-in endpoints, and whether Swagger UI is served.

/**
 * @typedef {{issuer: string, clientId: string, scope: string, authorizationEndpoint: string, tokenEndpoint: string,
 *   endSessionEndpoint: string | null}} SignIn
 * @type {{setUp: boolean, signIn: SignIn | null, interface: boolean}}
 */
export const config = JSON.parse(document.body.dataset.config ?? "null");

/** The address of this gateway, for snippets and commands. */
export const origin = window.location.origin;
