// SPDX-License-Identifier: Apache-2.0
// Sign in by redirect: authorization code with PKCE (RFC 7636), state and nonce, as a public client. The token is stored in
// sessionStorage, which belongs to this tab and is deleted with it.

import { config, origin } from "./config.js";

const PENDING = "lakegate.sign-in";
const SESSION = "lakegate.session";
const PAGE = origin + "/ui";

// The time in which a started sign-in must be completed: enough to enter a password.
const PENDING_MS = 15 * 60 * 1000;

/** The session has ended: there is no token, it has expired, or the gateway refuses it. */
export class SessionEnded extends Error {}

/** @param {Uint8Array} bytes */
function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

function random() {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

/** @param {string} verifier */
async function challengeOf(verifier) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  return base64url(new Uint8Array(digest));
}

/** @param {string} key */
function take(key) {
  const kept = sessionStorage.getItem(key);
  sessionStorage.removeItem(key);
  try {
    return kept === null ? null : JSON.parse(kept);
  } catch {
    return null;
  }
}

function provider() {
  if (config.signIn === null) {
    throw new Error("The identity provider does not answer. Try again later.");
  }
  return config.signIn;
}

/** Redirect to the provider. The current address is restored after the sign-in. */
export async function signIn() {
  const { authorizationEndpoint, clientId, scope } = provider();
  const address = window.location.hash;
  const pending = { state: random(), nonce: random(), verifier: random(), begun: Date.now(), address };
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
  const to = new URL(authorizationEndpoint);
  const parameters = {
    response_type: "code",
    client_id: clientId,
    redirect_uri: PAGE,
    scope,
    state: pending.state,
    nonce: pending.nonce,
    code_challenge: await challengeOf(pending.verifier),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(parameters)) {
    to.searchParams.set(name, value);
  }
  window.location.assign(to.href);
}

/** @param {string} token */
function claimsOf(token) {
  const part = token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
  const bytes = Uint8Array.from(atob(part), (character) => character.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes));
}

// The ID token came over TLS from the token endpoint itself, so its claims are checked and not its signature (OpenID
// Connect Core 3.1.3.7, point 6). It only binds the response to this tab; the gateway verifies the user.
function requireOurs(idToken, pending) {
  const claims = claimsOf(idToken);
  const audience = [].concat(claims.aud);
  if (claims.nonce !== pending.nonce || claims.iss !== provider().issuer || !audience.includes(provider().clientId)) {
    throw new Error("The provider's response belongs to another sign-in and was discarded. Sign in again.");
  }
}

/**
 * Complete the sign-in with the provider's response. Return the address in which it was started.
 * @param {URLSearchParams} given
 * @returns {Promise<string>}
 */
export async function completeSignIn(given) {
  const pending = take(PENDING);
  const fresh = pending !== null && Date.now() - pending.begun < PENDING_MS;
  if (!fresh || given.get("state") !== pending.state) {
    throw new Error("This sign-in was not begun in this tab, or it has expired. Sign in again.");
  }
  // RFC 9207: if the response names its issuer, it must be the configured one.
  if (given.has("iss") && given.get("iss") !== provider().issuer) {
    throw new Error("Another provider answered than the configured one. Sign in again.");
  }
  if (given.has("error")) {
    throw new Error("The provider did not sign you in: " + (given.get("error_description") || given.get("error")));
  }
  const form = {
    grant_type: "authorization_code",
    code: given.get("code") ?? "",
    redirect_uri: PAGE,
    client_id: provider().clientId,
    code_verifier: pending.verifier,
  };
  const answer = await fetch(provider().tokenEndpoint, {
    method: "POST",
    body: new URLSearchParams(form),
    headers: { Accept: "application/json" },
    credentials: "omit",
    cache: "no-store",
    redirect: "error",
  });
  const tokens = await answer.json();
  if (!answer.ok || typeof tokens.access_token !== "string" || !/^bearer$/i.test(tokens.token_type)) {
    throw new Error("The provider returned no token" + (tokens.error ? ": " + tokens.error : "."));
  }
  if (provider().scope.split(" ").includes("openid")) {
    requireOurs(tokens.id_token, pending);
  }
  // The ID token and a refresh token are not stored: the page does not need them.
  const ends = Date.now() + 1000 * (Number(tokens.expires_in) || 300);
  sessionStorage.setItem(SESSION, JSON.stringify({ token: tokens.access_token, ends }));
  return pending.address;
}

/** Return True if a sign-in was completed in this tab. */
export function hasSession() {
  return sessionStorage.getItem(SESSION) !== null;
}

/** Return the token; null if there is none, or if it has expired. @returns {string | null} */
export function token() {
  const session = JSON.parse(sessionStorage.getItem(SESSION) ?? "null");
  return session === null || session.ends <= Date.now() ? null : session.token;
}

/** Delete the token of this tab. */
export function signOut() {
  sessionStorage.removeItem(SESSION);
}

/** Return the address that also ends the session at the provider; null if the provider has none. */
export function endSessionAddress() {
  if (config.signIn === null || config.signIn.endSessionEndpoint === null) {
    return null;
  }
  const end = new URL(config.signIn.endSessionEndpoint);
  end.searchParams.set("client_id", config.signIn.clientId);
  return end.href;
}
