// SPDX-License-Identifier: Apache-2.0
// Users: people and machine identities, with a filter by name.

import { html } from "lit";

import { change, get, path } from "../core/api.js";
import { actionsOn } from "../core/objects.js";
import { Page } from "../core/page.js";
import { address, go, setState } from "../core/router.js";
import { openDialog } from "../parts/dialog.js";
import { entry, field } from "../parts/forms.js";
import { asCode, title } from "../parts/heading.js";
import "../parts/long-list.js";
import { menu } from "../parts/menu.js";
import { when } from "../parts/small.js";
import { tabs } from "../parts/tabs.js";

/** Return a source of users of one type. @param {string} type @param {string} name */
function usersOf(type, name) {
  const first = "/management/v1/user?pageSize=500" + (name === "" ? "" : path`&name=${name}`);
  return async (/** @type {string | null} */ token) => {
    let next = token;
    for (;;) {
      const answer = await get(first + (next === null ? "" : "&pageToken=" + encodeURIComponent(next)));
      const rows = answer.users.filter((/** @type {any} */ each) => each["user-type"] === type);
      next = answer["next-page-token"] ?? null;
      // A page without a user of the type is not the end of the list.
      if (rows.length > 0 || next === null) {
        return { rows, next };
      }
    }
  };
}

const COLUMNS = [
  { label: "Name", draw: (/** @type {any} */ each) => html`<a href=${address("user", [encodeURIComponent(each.id)])}>${each.name}</a>` },
  { label: "Id", draw: (/** @type {any} */ each) => html`<code>${each.id}</code>` },
  { label: "Email", draw: (/** @type {any} */ each) => each.email ?? "" },
  { label: "Since", draw: (/** @type {any} */ each) => when(each["created-at"]) },
];

/** Ask for a user, and create it. */
function create() {
  let id = "";
  void openDialog({
    title: "Create a user",
    action: "Create",
    body: html`${field({ name: "id", label: "User id", required: true, help: "The provider and the subject of the token, such as oidc~alice." })}
      ${field({ name: "name", label: "Name", required: true })} ${field({ name: "email", label: "Email", type: "email", help: "Empty: none." })}
      ${field({ name: "type", label: "Type", options: [["human", "person"], ["application", "machine identity"]], help: "A machine identity is a job, a service or an engine." })}`,
    submit: async (values) => {
      id = values.id.trim();
      await change("POST", "/management/v1/user", { id, name: values.name, "user-type": values.type, ...(values.email === "" ? {} : { email: values.email }) });
    },
  }).then((done) => done && go(address("user", [encodeURIComponent(id)])));
}

export default class UsersPage extends Page {
  /** @param {import("../core/router.js").Route} from @param {import("../core/router.js").Route} to */
  same(from, to) {
    return super.same(from, to) && from.query.name === to.query.name;
  }

  /** @param {import("../core/router.js").Route} route */
  async load({ query }) {
    const name = query.name ?? "";
    const actions = await actionsOn({ type: "server", id: "", name: "" });
    return { actions, name, people: usersOf("human", name), machines: usersOf("application", name) };
  }

  /** @param {any} data */
  body({ actions, name, people, machines }) {
    const filter = (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      setState({ name: String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("name")) });
    };
    return html`${title("Users", "People and machine identities that signed in, were created here, or come from a directory.")}
      <div class="bar">
        <form class="question" role="search" @submit=${filter}>
          <label>Name <input name="name" .value=${name} autocomplete="off" /></label><button type="submit">Filter</button>
        </form>
        ${menu("Users", [entry("Create a user …", actions, "provision_users", "the server", create)])}
      </div>
      ${tabs({
        people: { label: "People", draw: () => this.list("People", people) },
        machines: { label: "Machine identities", draw: () => this.list("Machine identities", machines) },
      }, ["name"])}
      ${asCode()}`;
  }

  /** @param {string} label @param {unknown} source */
  list(label, source) {
    return html`<lg-long-list label=${label} .source=${source} .columns=${COLUMNS} .empty=${"No such user. Users appear here when they sign in."}></lg-long-list>`;
  }
}
