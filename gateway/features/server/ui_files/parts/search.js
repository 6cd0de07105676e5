// SPDX-License-Identifier: Apache-2.0
// The search of every page (key "/"): tables and views by a part of their name, users, roles, tags, and ids.

import { LitElement, html, nothing } from "lit";

import { ask, get, path } from "../core/api.js";
import { inAddress, pageOf, projects, warehouses } from "../core/objects.js";
import { address, go } from "../core/router.js";

/** @typedef {{label: string, kind: string, to: string}} Hit */

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const WAIT_MS = 250;

/** Search tables and views of one warehouse. @param {any} row @param {string} text @returns {Promise<Hit[]>} */
async function tabulars(row, text) {
  const warehouse = row["warehouse-id"];
  const { tabulars } = await ask("/management/v1" + path`/warehouse/${warehouse}/search-tabular`, { search: text });
  return tabulars.map((/** @type {any} */ each) => {
    const type = each["tabular-id"].type;
    const namespace = each["namespace-name"];
    const name = each["tabular-name"];
    const on = { type, id: each["tabular-id"].id, name, namespace, project: row["project-id"], warehouse, warehouseName: row.name };
    return { label: [...namespace, name].join("."), kind: `${type} in ${row.name}`, to: pageOf(on) };
  });
}

/** @param {string} text @returns {Promise<Hit[]>} */
async function users(text) {
  const { users } = await ask("/management/v1/search/user", { search: text });
  return users.map((/** @type {any} */ each) => ({ label: each.name, kind: "user", to: address("user", [encodeURIComponent(each.id)]) }));
}

/** @param {string} project @param {string} text @returns {Promise<Hit[]>} */
async function roles(project, text) {
  const { roles } = await ask("/management/v1/search/role", { search: text }, { project });
  return roles.map((/** @type {any} */ each) => ({ label: each.name, kind: "role", to: address("role", [encodeURIComponent(each.id)], { project: inAddress(project) }) }));
}

/** @param {string} project @param {string} text @returns {Promise<Hit[]>} */
async function tags(project, text) {
  const answer = await get("/management/v1/tag-definition", { project });
  const rows = answer["tag-definitions"] ?? answer.tags ?? [];
  return rows
    .filter((/** @type {any} */ each) => each.name.includes(text))
    .map((/** @type {any} */ each) => ({ label: each.name, kind: "tag", to: address("tag", [each.id], { project: inAddress(project) }) }));
}

/** Return all hits. Kinds that the caller may not search are left out. @param {string} text @returns {Promise<Hit[]>} */
async function search(text) {
  const seen = await projects();
  const ids = seen.map((each) => each["project-id"]);
  const all = (await Promise.all(ids.map((each) => warehouses(each)))).flat();
  const searches = [
    ...all.filter((each) => each.status === "active").map((each) => tabulars(each, text)),
    users(text),
    ...ids.map((each) => roles(each, text)),
    ...ids.map((each) => tags(each, text)),
  ];
  const hits = (await Promise.allSettled(searches)).flatMap((each) => (each.status === "fulfilled" ? each.value : []));
  const byId = UUID.test(text)
    ? [
        { label: text, kind: "denial", to: address("denial", [text]) },
        { label: text, kind: "request", to: address("requests", [text]) },
      ]
    : [];
  return [...byId, ...hits].slice(0, 50);
}

class Search extends LitElement {
  static properties = { hits: { state: true }, chosen: { state: true }, busy: { state: true } };

  constructor() {
    super();
    /** @type {Hit[] | null} */
    this.hits = null;
    this.chosen = -1;
    this.busy = false;
    this.timer = 0;
    this.turn = 0;
  }

  createRenderRoot() {
    return this;
  }

  connectedCallback() {
    super.connectedCallback();
    document.addEventListener("keydown", (event) => {
      const typing = event.target instanceof HTMLElement && event.target.closest("input, textarea, select, dialog") !== null;
      if (event.key === "/" && !typing) {
        event.preventDefault();
        this.querySelector("input")?.focus();
      }
    });
  }

  /** @param {InputEvent} event */
  typed(event) {
    const text = /** @type {HTMLInputElement} */ (event.target).value.trim();
    window.clearTimeout(this.timer);
    const turn = ++this.turn;
    if (text.length < 2) {
      this.hits = null;
      return;
    }
    this.timer = window.setTimeout(async () => {
      this.busy = true;
      const hits = await search(text).catch(() => []);
      if (turn === this.turn) {
        this.hits = hits;
        this.chosen = -1;
        this.busy = false;
      }
    }, WAIT_MS);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const hits = this.hits ?? [];
    if (event.key === "Escape") {
      this.close();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.chosen = Math.max(0, Math.min(hits.length - 1, this.chosen + step));
    } else if (event.key === "Enter" && hits.length > 0) {
      go(hits[Math.max(0, this.chosen)].to);
      this.close();
    }
  }

  close() {
    this.turn++;
    this.hits = null;
    const input = this.querySelector("input");
    if (input !== null) {
      input.value = "";
    }
  }

  render() {
    const open = this.hits !== null;
    return html`<search>
      <input type="search" aria-label="Search tables, users, roles, tags and ids" placeholder="Search ( / )" role="combobox" aria-expanded=${open}
        aria-controls="search-hits" aria-autocomplete="list" autocomplete="off" spellcheck="false"
        aria-activedescendant=${this.chosen >= 0 ? `hit-${this.chosen}` : ""} @input=${this.typed} @keydown=${this.key} />
      <ul id="search-hits" role="listbox" aria-label="Found" ?hidden=${!open}>
        ${(this.hits ?? []).map(
          (hit, at) => html`<li role="option" id="hit-${at}" aria-selected=${at === this.chosen}>
            <a href=${hit.to} tabindex="-1" @click=${() => this.close()}>${hit.label} <span class="quiet">${hit.kind}</span></a>
          </li>`,
        )}
        ${open && this.hits?.length === 0 ? html`<li role="option" aria-selected="false" class="quiet">Nothing found that you may see.</li>` : nothing}
      </ul>
    </search>`;
  }
}

customElements.define("lg-search", Search);
