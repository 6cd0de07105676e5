// SPDX-License-Identifier: Apache-2.0
// Home: what I may see, what I asked for, what ends soon.

import { html, nothing } from "lit";

import { get, path } from "../core/api.js";
import { pageOf, projects, warehouses } from "../core/objects.js";
import { Page } from "../core/page.js";
import { address } from "../core/router.js";
import { asCode, title } from "../parts/heading.js";
import { badge, empty, when } from "../parts/small.js";

const SOON_MS = 14 * 86_400_000;

export default class Home extends Page {
  async load() {
    const me = await get("/management/v1/whoami");
    const [roles, mine, inbox, grants, seen] = await Promise.all([
      get("/management/v1" + path`/user/${me.id}/roles/transitive`),
      get("/management/v1/access/requests?mine=true&status=pending&pageSize=20"),
      get("/management/v1/access/requests?mine=false&status=pending&pageSize=20"),
      // A caller without a project has no grants of a project to list.
      get("/management/v1/grants" + path`?principalUser=${me.id}&pageSize=100`).catch(() => ({ grants: [] })),
      projects(),
    ]);
    const all = await Promise.all(seen.map((each) => warehouses(each["project-id"])));
    return { me, roles: roles.roles, mine: mine["access-requests"], inbox: inbox["access-requests"], grants: grants.grants, projects: seen, warehouses: all };
  }

  /** @param {any} data */
  body({ me, roles, mine, inbox, grants, projects, warehouses }) {
    const ending = grants.filter((/** @type {any} */ each) => each["expires-at"] && new Date(each["expires-at"]).getTime() - Date.now() < SOON_MS);
    const others = inbox.filter((/** @type {any} */ each) => each.principal.user !== me.id);
    return html`${title(`Welcome, ${me.name}`)}
      <div class="cards">
        <section aria-labelledby="home-projects">
          <h2 id="home-projects">My projects</h2>
          ${projects.length === 0 ? empty("You see no project.", "Request a right from an administrator of a project.") : nothing}
          ${projects.map((/** @type {any} */ each, /** @type {number} */ at) => this.project(each, warehouses[at]))}
        </section>
        <section aria-labelledby="home-access">
          <h2 id="home-access">My access</h2>
          <p>User id <code>${me.id}</code>${me["is-instance-admin"] ? html` ${badge("instance admin", "warn")}` : nothing}</p>
          <h3>Roles</h3>
          ${roles.length === 0
            ? html`<p class="quiet">none</p>`
            : html`<ul>${roles.map((/** @type {any} */ each) => html`<li><a href=${address("role", [each.id])}>${each.name}</a></li>`)}</ul>`}
          <h3>Ends soon</h3>
          ${ending.length === 0
            ? html`<p class="quiet">No grant of yours ends in the next two weeks.</p>`
            : html`<ul>${ending.map((/** @type {any} */ each) => html`<li>${each.privilege} on ${each.resource.type} ends ${when(each["expires-at"])}</li>`)}</ul>`}
        </section>
        <section aria-labelledby="home-requests">
          <h2 id="home-requests">Requests</h2>
          ${others.length === 0 ? nothing : html`<p><a href=${address("requests", [], { tab: "inbox" })}>${others.length} to decide</a></p>`}
          ${mine.length === 0
            ? html`<p class="quiet">You wait for no decision.</p>`
            : html`<ul>${mine.map((/** @type {any} */ each) => html`<li><a href=${address("requests", [each.id])}>${each.privileges.join(", ")} on ${each.name}</a>, ${when(each["created-at"])}</li>`)}</ul>`}
        </section>
      </div>
      ${asCode()}`;
  }

  /** @param {any} project @param {any[]} rows */
  project(project, rows) {
    return html`<h3><a href=${address("project", [project["project-id"]])}>${project["project-name"]}</a></h3>
      ${rows.length === 0
        ? html`<p class="quiet">no visible warehouse</p>`
        : html`<ul>
            ${rows.map((row) => {
              const id = row["warehouse-id"];
              const to = pageOf({ type: "warehouse", id, name: row.name, project: row["project-id"] });
              return html`<li><a href=${to}>${row.name}</a> ${row.status === "active" ? nothing : badge(row.status, "warn")}</li>`;
            })}
          </ul>`}`;
  }
}
