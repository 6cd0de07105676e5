// SPDX-License-Identifier: Apache-2.0
// A user: profile, roles, grants, what the user can do, live credentials, delegates, and a comparison with another user.

import { html, nothing } from "lit";

import { ask, change, get, pages, path } from "../core/api.js";
import { actionsOn, managementPath, pageOf, projectOf, projects, warehouses } from "../core/objects.js";
import { Page } from "../core/page.js";
import { address, go, setState } from "../core/router.js";
import { comparison } from "../parts/comparison.js";
import { confirmDestruction, openDialog } from "../parts/dialog.js";
import { entry, field, projectChoice, yaml } from "../parts/forms.js";
import { asCode, heading } from "../parts/heading.js";
import { credentialList, liveCredentials } from "../parts/live-credentials.js";
import { menu } from "../parts/menu.js";
import { grantList, grantsOf, whatCanBody } from "../parts/rights.js";
import { badge, copied, empty, when } from "../parts/small.js";
import { tabs } from "../parts/tabs.js";

/** Return the names of a project and its warehouses by their ids. @param {any} project @returns {Promise<Map<string, string>>} */
async function namesIn(project) {
  if (project === null) {
    return new Map();
  }
  const rows = await warehouses(project["project-id"]);
  return new Map([[project["project-id"], project["project-name"]], ...rows.map((each) => /** @type {[string, string]} */ ([each["warehouse-id"], each.name]))]);
}

/** Return what two users can do in a project. @param {string} one @param {string} other @param {string} project */
async function bothCan(one, other, project) {
  const answers = await Promise.all([one, other].map((user) => ask("/management/v1/access/what-can", whatCanBody({ user }, project))));
  return { one, other, rows: answers.map((each) => each.rows), more: answers.some((each) => each["next-page-token"]) };
}

export default class UserPage extends Page {
  static properties = { ...Page.properties, notice: { state: true }, roles: { state: true }, both: { state: true }, delegates: { state: true } };

  constructor() {
    super();
    this.notice = "";
    /** @type {any} */
    this.roles = null;
    /** @type {any} */
    this.both = null;
    /** @type {any} */
    this.delegates = null;
  }

  /** @param {import("../core/router.js").Route} from @param {import("../core/router.js").Route} to */
  same(from, to) {
    return super.same(from, to) && from.query.with === to.query.with;
  }

  /** @param {import("../core/router.js").Route} route */
  async load({ parts, query }) {
    const id = decodeURIComponent(parts[0] ?? "");
    const named = { type: /** @type {const} */ ("user"), id, name: "" };
    const [user, actions, me, all, project] = await Promise.all([get(managementPath(named)), actionsOn(named), get("/management/v1/whoami"), projects(), projectOf(query.project)]);
    const on = { ...named, ...user };
    const projectId = project?.["project-id"] ?? "";
    const mine = me.id === id;
    this.roles = this.both = this.delegates = null;
    return {
      on,
      mine,
      all,
      project: projectId,
      with: query.with ?? "",
      actions,
      names: await namesIn(project),
      grants: grantsOf({ user: id }, projectId),
      live: liveCredentials("/management/v1/live-credentials" + (mine ? "" : path`?principalUser=${id}`), projectId),
    };
  }

  /** @param {any} data */
  body(data) {
    const { on, mine, all, project, actions, names } = data;
    const who = { user: on.id };
    return html`${heading(on, {
        badges: on["user-type"] === "application" ? badge("machine identity") : nothing,
        menu: menu("User", [
          entry("Change …", actions, "update", "this user", () => this.change(on)),
          entry("Delete …", actions, "delete", "this user", () => this.delete(on)),
        ]),
      })}
      ${projectChoice(all, project)}
      <p role="status">${this.notice}</p>
      ${tabs({
        profile: { label: "Profile", draw: () => this.profile(on) },
        roles: { label: "Roles", draw: () => this.rolesOf(on) },
        grants: { label: "Grants", draw: () => grantList(data.grants, names, () => void this.reload()) },
        can: { label: "What the user can do", draw: () => html`<lg-what-can .principal=${mine ? null : who} project=${project} .names=${names}></lg-what-can>` },
        credentials: { label: "Live credentials", draw: () => credentialList(data.live, (notice) => this.changed(notice)) },
        ...(mine ? { delegates: { label: "Delegates", draw: () => this.delegatesOf() } } : {}),
        compare: { label: "Compare", draw: () => this.compare(data) },
      })}
      ${asCode(`version: 1\nusers:\n  - {id: ${yaml(on.id)}, name: ${yaml(on.name)}, type: ${on["user-type"]}}\n`)}`;
  }

  /** @param {string} notice */
  changed(notice) {
    this.notice = notice;
    void this.reload();
  }

  /** @param {any} on */
  profile(on) {
    return html`<dl class="facts">
      <dt>Id</dt><dd>${copied(on.id, "the id")}</dd>
      <dt>Email</dt><dd>${on.email ?? html`<span class="quiet">none</span>`}</dd>
      <dt>Type</dt><dd>${on["user-type"] === "application" ? "machine identity" : "person"}</dd>
      <dt>Created</dt><dd>${when(on["created-at"])}</dd>
      <dt>Last changed</dt><dd>${when(on["updated-at"])} <span class="quiet">${on["last-updated-with"]}</span></dd>
      <dt>Deactivate</dt><dd class="quiet">The directory deactivates its users (SCIM, “active: false”): then every request is refused, and the grants stay.</dd>
    </dl>`;
  }

  /** Run a request of a tab once, and draw the page again with its answer. @param {"roles" | "both" | "delegates"} member @param {() => Promise<any>} read */
  once(member, read) {
    if (this[member] === null) {
      this[member] = "loading";
      read().then((found) => (this[member] = found), (error) => this.fail(error));
    }
    return this[member] === "loading" ? null : this[member];
  }

  /** @param {any} on */
  rolesOf(on) {
    const found = this.once("roles", async () => {
      const list = managementPath(on) + "/roles";
      const [direct, every] = await Promise.all([pages(list + "?pageSize=500", "roles"), pages(list + "/transitive?pageSize=500", "roles")]);
      return { direct: new Set(direct.rows.map((each) => each.id)), every: every.rows };
    });
    if (found === null) {
      return html`<p class="loading" role="status">Loading …</p>`;
    }
    if (found.every.length === 0) {
      return empty("This user is in no role that you may see.", "Add the user on the page of a role.");
    }
    return html`<table>
      <caption>Roles</caption>
      <thead><tr><th scope="col">Role</th><th scope="col">Membership</th><th scope="col">Id</th></tr></thead>
      <tbody>
        ${found.every.map(
          (/** @type {any} */ each) => html`<tr>
            <th scope="row"><a href=${pageOf({ type: "role", ...each })}>${each.name}</a></th>
            <td>${found.direct.has(each.id) ? badge("direct", "good") : badge("through another role")}</td><td><code>${each.id}</code></td>
          </tr>`,
        )}
      </tbody>
    </table>`;
  }

  delegatesOf() {
    const found = this.once("delegates", () => get("/management/v1/whoami/delegates?pageSize=200"));
    if (found === null) {
      return html`<p class="loading" role="status">Loading …</p>`;
    }
    if (found.delegates.length === 0) {
      return empty("No engine may act for you.");
    }
    return html`<table>
      <caption>Engines that may act for you</caption>
      <thead><tr><th scope="col">Engine</th><th scope="col">In</th><th scope="col">Since</th><th scope="col">Ends</th></tr></thead>
      <tbody>
        ${found.delegates.map(
          (/** @type {any} */ each) => html`<tr>
            <th scope="row">${each.holder.name ?? each.holder.user ?? each.holder.role}</th><td>${each.resource.type} ${each.resource.name}</td>
            <td>${when(each["created-at"])}</td><td>${when(each["expires-at"], "never")}</td>
          </tr>`,
        )}
      </tbody>
    </table>`;
  }

  /** @param {any} data */
  compare({ on, project, names, with: other }) {
    const choose = (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      setState({ with: String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("with")).trim().replace(/^user\//, "") });
    };
    const found = other === "" ? undefined : this.once("both", () => bothCan(on.id, other, project));
    return html`<form class="question" @submit=${choose}>
        <label>Compare with the user <input name="with" .value=${other} required placeholder="oidc~name" autocomplete="off" /></label>
        <button type="submit" class="primary">Compare</button>
      </form>
      ${found === undefined ? nothing : found === null ? html`<p class="loading" role="status">Loading …</p>` : comparison(found, names)}`;
  }

  /** @param {any} on */
  change(on) {
    void openDialog({
      title: "Change a user",
      action: "Save",
      body: html`${field({ name: "name", label: "Name", value: on.name, required: true })} ${field({ name: "email", label: "Email", type: "email", value: on.email ?? "" })}
        ${field({ name: "type", label: "Type", value: on["user-type"], options: [["human", "person"], ["application", "machine identity"]] })}`,
      submit: (values) => change("PUT", managementPath(on), { name: values.name, "user-type": values.type, email: values.email === "" ? null : values.email }),
    }).then((done) => done && this.changed("The user was changed."));
  }

  /** @param {any} on */
  delete(on) {
    void confirmDestruction({
      title: "Delete a user",
      name: on.id,
      action: "Delete",
      consequence: html`The user ${on.name} and all grants and memberships of the user are deleted. This cannot be undone. Someone who signs in with this
        identity again becomes a new user with no rights but those of groups in the token: deactivate the identity at the provider first. Credentials for files that the user
        holds stay valid until they expire.`,
      submit: () => change("DELETE", managementPath(on)),
    }).then((done) => done && go(address("users")));
  }
}
