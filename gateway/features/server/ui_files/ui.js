// SPDX-License-Identifier: Apache-2.0
// Sign in by redirect: authorization code with PKCE (RFC 7636), state and nonce, as a public client. The token is stored in
// sessionStorage, which belongs to this tab and is deleted with it. The page makes no decisions: it reads each list from
// the API with the token. Text from responses is only inserted as text, never as HTML.
"use strict";

const told = JSON.parse(document.body.dataset.told);
const here = window.location.origin + "/ui";
const PENDING = "lakegate.sign-in";
const SESSION = "lakegate.session";
// The id of a refused request, from the link in its error message. It must survive the sign-in.
const DENIAL = "lakegate.denial";

// The time in which a started sign-in must be completed: enough to enter a password.
const PENDING_MS = 15 * 60 * 1000;

class Ended extends Error {}

function at(id) {
  return document.getElementById(id);
}

function show(part) {
  at("welcome").hidden = part !== "welcome";
  at("inside").hidden = part !== "inside";
  at("sign-out").hidden = part !== "inside";
}

function say(text) {
  at("status").textContent = text;
}

function complain(text) {
  at("problem").textContent = text;
  at("problem").hidden = text === "";
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) {
    made.textContent = text;
  }
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  return made;
}

function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

function random() {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

async function challengeOf(verifier) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  return base64url(new Uint8Array(digest));
}

function take(key) {
  const kept = sessionStorage.getItem(key);
  sessionStorage.removeItem(key);
  try {
    return kept === null ? null : JSON.parse(kept);
  } catch {
    return null;
  }
}

// ---- redirect to the provider -----------------------------------------------------------------------------------

async function signIn() {
  const pending = { state: random(), nonce: random(), verifier: random(), begun: Date.now() };
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
  const to = new URL(told.signIn.authorizationEndpoint);
  const asked = {
    response_type: "code",
    client_id: told.signIn.clientId,
    redirect_uri: here,
    scope: told.signIn.scope,
    state: pending.state,
    nonce: pending.nonce,
    code_challenge: await challengeOf(pending.verifier),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(asked)) {
    to.searchParams.set(name, value);
  }
  window.location.assign(to.href);
}

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
  if (claims.nonce !== pending.nonce || claims.iss !== told.signIn.issuer || !audience.includes(told.signIn.clientId)) {
    throw new Error("The provider's response belongs to another sign-in and was discarded. Sign in again.");
  }
}

async function comeBack(given) {
  const pending = take(PENDING);
  const fresh = pending !== null && Date.now() - pending.begun < PENDING_MS;
  if (!fresh || given.get("state") !== pending.state) {
    throw new Error("This sign-in was not begun in this tab, or it has expired. Sign in again.");
  }
  // RFC 9207: if the response names its issuer, it must be the configured one.
  if (given.has("iss") && given.get("iss") !== told.signIn.issuer) {
    throw new Error("Another provider answered than the configured one. Sign in again.");
  }
  if (given.has("error")) {
    throw new Error("The provider did not sign you in: " + (given.get("error_description") || given.get("error")));
  }
  const form = {
    grant_type: "authorization_code",
    code: given.get("code"),
    redirect_uri: here,
    client_id: told.signIn.clientId,
    code_verifier: pending.verifier,
  };
  const answer = await fetch(told.signIn.tokenEndpoint, {
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
  if (told.signIn.scope.split(" ").includes("openid")) {
    requireOurs(tokens.id_token, pending);
  }
  // The ID token and a refresh token are not stored: the page does not need them.
  const ends = Date.now() + 1000 * (Number(tokens.expires_in) || 300);
  sessionStorage.setItem(SESSION, JSON.stringify({ token: tokens.access_token, ends }));
}

function signOut(why) {
  sessionStorage.removeItem(SESSION);
  for (const id of ["me", "roles", "projects"]) {
    at(id).replaceChildren();
  }
  if (told.signIn !== null && told.signIn.endSessionEndpoint !== null) {
    const end = new URL(told.signIn.endSessionEndpoint);
    end.searchParams.set("client_id", told.signIn.clientId);
    at("end-session").href = end.href;
    at("elsewhere").hidden = false;
  }
  show("welcome");
  say(why);
  at("sign-in").focus();
}

// ---- what the interface tells -----------------------------------------------------------------------------------

async function ask(path, { method = "GET", project, body } = {}) {
  const session = JSON.parse(sessionStorage.getItem(SESSION));
  if (session === null || session.ends <= Date.now()) {
    throw new Ended();
  }
  const headers = { Authorization: "Bearer " + session.token, Accept: "application/json" };
  if (project !== undefined) {
    headers["x-project-id"] = project;
  }
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
  }
  const answer = await fetch(path, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    credentials: "omit",
    redirect: "error",
  });
  if (answer.status === 401) {
    throw new Ended();
  }
  return answer;
}

async function read(path, more) {
  const answer = await ask(path, more);
  const found = await answer.json();
  if (!answer.ok) {
    throw new Error(found.error ? found.error.message : "The gateway returned status " + answer.status + ".");
  }
  return found;
}

async function whoAmI() {
  const answer = await ask("/management/v1/whoami");
  if (answer.status !== 404) {
    return answer.ok ? answer.json() : read("/management/v1/whoami");
  }
  // First visit: create the user's own record, which gives no right.
  return read("/management/v1/user", { method: "POST", body: {} });
}

function tellWho(me) {
  const provider = me.id.slice(0, me.id.indexOf("~"));
  const rows = [["Name", me.name], ["User id", me.id], ["Provider", provider], ["Type", me["user-type"]]];
  if (me.email) {
    rows.push(["E-mail", me.email]);
  }
  if (me["is-instance-admin"]) {
    rows.push(["Administration", "instance admin"]);
  }
  for (const [name, value] of rows) {
    const cell = element("dd");
    cell.append(name === "User id" ? element("code", value) : value);
    at("me").append(element("dt", name), cell);
  }
}

function tellRoles(roles) {
  for (const role of roles) {
    const line = element("li", role.name + " ");
    line.append(element("code", role.ident));
    at("roles").append(line);
  }
  if (roles.length === 0) {
    at("roles").append(element("li", "none", { class: "quiet" }));
  }
}

function tellProject(project, warehouses) {
  if (warehouses.length === 0) {
    at("projects").append(element("p", project["project-name"] + ": no visible warehouse", { class: "quiet" }));
    return;
  }
  const table = element("table");
  table.append(element("caption", project["project-name"]));
  const head = table.createTHead().insertRow();
  for (const name of ["Warehouse", "Status", "Id"]) {
    head.append(element("th", name, { scope: "col" }));
  }
  const body = table.createTBody();
  for (const each of warehouses) {
    const row = body.insertRow();
    row.insertCell().textContent = each.name;
    row.insertCell().textContent = each.status;
    row.insertCell().append(element("code", each["warehouse-id"]));
  }
  at("projects").append(table);
}

const IN_A_WAREHOUSE = new Set(["namespace", "table", "view", "generic_table"]);
const REQUESTABLE = new Set([...IN_A_WAREHOUSE, "project", "warehouse", "role", "tag", "data_policy"]);

function namesOf(repair) {
  return repair.grants.map((each) => each.privilege + " on " + each.object.type + " " + (each.object.name || each.object.id)).join(" and ");
}

function parts(explanation) {
  const found = explanation.policies.reasons.map((each) => each.message);
  for (const rule of explanation.policies.rules || []) {
    found.push("Rule " + rule.package + "." + rule.rule + " in " + rule.file + ", line " + rule.line);
  }
  for (const lift of explanation.policies["lifted-by"] || []) {
    found.push("It would be allowed with " + lift.input + " = " + lift.value);
  }
  for (const repair of explanation.relationships.repairs || []) {
    found.push("Enough would be: " + namesOf(repair));
  }
  return found;
}

// The request names each object with all privileges of the repair on it. They are decided together.
function requestOf(explanation, repair, reason) {
  const made = new Map();
  for (const { object, privilege } of repair.grants) {
    const kind = object.type.replace("_", "-");
    const on = { type: kind, [kind + "-id"]: object.id };
    if (explanation["warehouse-id"] !== undefined && IN_A_WAREHOUSE.has(object.type)) {
      on["warehouse-id"] = explanation["warehouse-id"];
    }
    const id = object.type + ":" + object.id;
    const item = made.get(id) || { object: on, privileges: [] };
    item.privileges.push(privilege);
    made.set(id, item);
  }
  return { items: [...made.values()], reason };
}

async function tellDenial(id, me) {
  const { explanation, reasons } = await read("/management/v1/access/denials/" + encodeURIComponent(id));
  const stated = new Set(explanation.policies.reasons.map((each) => each.code + ": " + each.message));
  const earlier = reasons.filter((each) => !stated.has(each));
  at("denial-summary").textContent = explanation.summary;
  at("denial-reasons").replaceChildren(...[...earlier, ...parts(explanation)].map((each) => element("li", each)));
  // Only the refused user can request the access for itself; others see the reasons.
  const repairs = (explanation.relationships.repairs || []).filter((repair) =>
    repair.grants.every((each) => REQUESTABLE.has(each.object.type) && each.principal.type === "user" && each.principal.id === me.id),
  );
  at("denial-request").hidden = repairs.length === 0;
  at("denial-repair").replaceChildren(...repairs.map((repair, number) => element("option", namesOf(repair), { value: String(number) })));
  at("denial-request").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const repair = repairs[Number(at("denial-repair").value)];
      const body = requestOf(explanation, repair, at("denial-reason").value);
      await read("/management/v1/access/requests", { method: "POST", body });
      at("denial-request").hidden = true;
      say("The request was sent. A principal that may make the grants decides.");
    } catch (error) {
      complain(error.message);
    }
  });
  at("denial").hidden = false;
}

async function tellAll() {
  say("Loading your account …");
  const me = await whoAmI();
  tellWho(me);
  const own = "/management/v1/user/" + encodeURIComponent(me.id) + "/roles/transitive";
  const [{ roles }, { projects }] = await Promise.all([read(own), read("/management/v1/project-list")]);
  tellRoles(roles);
  const all = await Promise.all(
    projects.map((each) => read("/management/v1/warehouse?warehouseStatus=active,inactive", { project: each["project-id"] })),
  );
  projects.forEach((each, number) => tellProject(each, all[number].warehouses));
  if (projects.length === 0) {
    at("projects").append(element("p", "None. Request a right from an administrator of a project.", { class: "quiet" }));
  }
  const denial = take(DENIAL);
  if (denial !== null) {
    await tellDenial(denial, me).catch((error) => complain(error.message));
  }
  show("inside");
  say("Signed in as " + me.name + ".");
}

// ---- the page ---------------------------------------------------------------------------------------------------

async function begin() {
  at("interface").hidden = !told.interface;
  at("sign-out").addEventListener("click", () => signOut("You are signed out here."));
  at("sign-in").addEventListener("click", () => signIn().catch((error) => complain(error.message)));
  const given = new URLSearchParams(window.location.search);
  if (given.has("denial")) {
    sessionStorage.setItem(DENIAL, JSON.stringify(given.get("denial")));
  }
  if (given.size > 0) {
    // Remove the code first, before any error, so that it is not stored in the history or a bookmark.
    window.history.replaceState(null, "", "/ui");
  }
  if (!told.setUp) {
    say("Sign-in with a browser is not configured: the operator must set UI__OPENID_CLIENT_ID.");
    return;
  }
  if (told.signIn === null) {
    say("The identity provider does not answer. Try again later.");
    return;
  }
  if (!window.isSecureContext) {
    say("Signing in needs https, or a gateway on this machine (localhost).");
    return;
  }
  try {
    if (given.has("state")) {
      say("Signing in …");
      await comeBack(given);
    }
    if (sessionStorage.getItem(SESSION) === null) {
      show("welcome");
      say("You are not signed in.");
      return;
    }
    await tellAll();
  } catch (error) {
    if (error instanceof Ended) {
      signOut("Your sign-in has ended.");
      return;
    }
    signOut("You are not signed in.");
    complain(error.message);
  }
}

begin();
