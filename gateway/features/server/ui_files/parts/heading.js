// SPDX-License-Identifier: Apache-2.0
// The head of an object's page: where it is, its name and id, its menu, and the page as curl and as `apply` file.

import { html, nothing } from "lit";

import { sentRequests } from "../core/api.js";
import { origin } from "../core/config.js";
import { inAddress, nameOf } from "../core/objects.js";
import { address, dotted } from "../core/router.js";
import { copied } from "./small.js";

/** @typedef {import("../core/objects.js").Thing} Thing */

/** Draw the path from the project to an object. @param {Thing} on */
function breadcrumbs(on) {
  const project = inAddress(on.project);
  const steps = [];
  if (on.warehouseName !== undefined && on.type !== "warehouse") {
    steps.push(html`<a href=${address("warehouse", [encodeURIComponent(on.warehouseName)], { project })}>${on.warehouseName}</a>`);
  }
  const above = on.type === "namespace" ? (on.namespace ?? []).slice(0, -1) : (on.namespace ?? []);
  above.forEach((level, at) => {
    const to = address("namespace", [encodeURIComponent(on.warehouseName ?? ""), dotted(above.slice(0, at + 1))], { project });
    steps.push(html`<a href=${to}>${level}</a>`);
  });
  return html`<nav aria-label="Breadcrumbs" class="breadcrumbs"><a href="#/">Home</a>${steps.map((step) => html` <span aria-hidden="true">›</span> ${step}`)}</nav>`;
}

/** Members of bodies that no page may show. */
const SECRETS = new Set(["secret-access-key", "client-secret", "key", "token"]);

/** @param {string} name @param {unknown} value */
function withoutSecret(name, value) {
  return SECRETS.has(name) ? "…" : value;
}

/** Return a request as a command. @param {{method: string, path: string, project?: string, body?: unknown}} request */
function curlOf({ method, path, project, body }) {
  const quoted = (/** @type {string} */ text) => `'${text.replaceAll("'", "'\\''")}'`;
  const lines = [`curl -H "Authorization: Bearer $(lakegate token)"`];
  if (method !== "GET") {
    lines.push(`-X ${method}`);
  }
  if (project !== undefined) {
    lines.push(`-H ${quoted("x-project-id: " + project)}`);
  }
  if (body !== undefined) {
    lines.push(`-H 'Content-Type: application/json' -d ${quoted(JSON.stringify(body, withoutSecret))}`);
  }
  lines.push(quoted(origin + path));
  return lines.join(" \\\n  ");
}

/** Fill a part when it is opened. @param {() => string | Promise<string>} text */
function onOpen(text) {
  return async (/** @type {Event} */ event) => {
    const details = /** @type {HTMLDetailsElement} */ (event.currentTarget);
    const shown = details.querySelector("pre");
    if (details.open && shown !== null) {
      shown.textContent = "Loading …";
      shown.textContent = await text();
    }
  };
}

/** Draw the requests of this page as commands. @param {string | (() => Promise<string>)} [yaml] the object as an `apply` file */
export function asCode(yaml) {
  return html`<div class="as-code">
    <details @toggle=${onOpen(() => sentRequests().map(curlOf).join("\n\n"))}><summary>As curl</summary><pre tabindex="0"></pre></details>
    ${yaml === undefined
      ? nothing
      : html`<details @toggle=${onOpen(() => (typeof yaml === "string" ? yaml : yaml()))}><summary>As apply YAML</summary><pre tabindex="0"></pre></details>`}
  </div>`;
}

/**
 * Draw the head of an object's page.
 * @param {Thing} on
 * @param {{menu?: unknown, badges?: unknown}} [more]
 */
export function heading(on, { menu = nothing, badges = nothing } = {}) {
  document.title = `${nameOf(on)} · Lakegate`;
  return html`${breadcrumbs(on)}
    <div class="heading">
      <h1><span class="type">${on.type.replace("-", " ")}</span> ${on.name || on.id} ${badges}</h1>
      ${menu}
    </div>
    <p class="names">${copied(nameOf(on), "the name")} ${on.id ? copied(on.id, "the id") : nothing}</p>`;
}

/** Draw the head of a page that is about no single object. @param {string} title @param {unknown} [text] */
export function title(title, text = nothing) {
  document.title = `${title} · Lakegate`;
  return html`<nav aria-label="Breadcrumbs" class="breadcrumbs"><a href="#/">Home</a></nav>
    <h1>${title}</h1>
    ${text === nothing ? nothing : html`<p class="lead">${text}</p>`}`;
}
