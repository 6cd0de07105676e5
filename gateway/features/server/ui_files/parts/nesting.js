// SPDX-License-Identifier: Apache-2.0
// The nesting of a role as a graph: the roles that contain it, the roles in it, and its own members.

import { LitElement, html, nothing } from "lit";

import { get, path } from "../core/api.js";
import { address } from "../core/router.js";
import { graph } from "./graph.js";
import { problem } from "./problem.js";

/** Roles that are read for one picture, and members that are drawn. */
const MOST = 40;

/** @typedef {{nodes: Map<string, import("./graph.js").GraphNode>, edges: import("./graph.js").GraphEdge[], left: number, more: boolean}} Picture */

/** @param {Picture} picture @param {string} kind @param {string} id @param {string} name */
function add({ nodes }, kind, id, name) {
  nodes.set(`${kind}:${id}`, { id: `${kind}:${id}`, kind, label: name, to: address(kind, [encodeURIComponent(id)]) });
}

/** Read the roles above or below a role, level by level. A role that the caller may not read ends its branch.
 * @param {Picture} picture @param {string} id @param {(id: string) => Promise<any[]>} next @param {boolean} up */
async function walk(picture, id, next, up) {
  const seen = new Set([id]);
  let level = [id];
  while (level.length > 0) {
    const found = await Promise.all(level.map((each) => next(each).catch(() => [])));
    const further = [];
    for (const [at, rows] of found.entries()) {
      for (const row of rows) {
        const kind = row.type ?? "role";
        add(picture, kind, row.id, row.name ?? row.id);
        const [from, to] = up ? [`role:${level[at]}`, `role:${row.id}`] : [`${kind}:${row.id}`, `role:${level[at]}`];
        picture.edges.push({ from, to, label: "member of", lit: level[at] === id });
        if (kind === "role" && !seen.has(row.id)) {
          seen.add(row.id);
          further.push(row.id);
        }
      }
    }
    picture.more ||= further.length > picture.left;
    level = further.slice(0, picture.left);
    picture.left -= level.length;
  }
}

class Nesting extends LitElement {
  static properties = { on: { attribute: false }, picture: { state: true }, failure: { state: true } };

  constructor() {
    super();
    /** @type {{id: string, name: string} | null} */
    this.on = null;
    /** @type {Picture | null} */
    this.picture = null;
    /** @type {unknown} */
    this.failure = null;
  }

  createRenderRoot() {
    return this;
  }

  connectedCallback() {
    super.connectedCallback();
    void this.read();
  }

  async read() {
    if (this.on === null) {
      return;
    }
    const { id, name } = this.on;
    /** @type {Picture} */
    const picture = { nodes: new Map(), edges: [], left: MOST, more: false };
    add(picture, "role", id, name);
    const members = async (/** @type {string} */ each) => {
      const answer = await get("/management/v1" + path`/role/${each}/members?pageSize=${MOST}`);
      picture.more ||= Boolean(answer["next-page-token"]);
      return answer.members;
    };
    const above = async (/** @type {string} */ each) => (await get("/management/v1" + path`/role/${each}/member-of?pageSize=${MOST}`)).roles;
    try {
      await walk(picture, id, above, true);
      await walk(picture, id, members, false);
      this.picture = picture;
    } catch (error) {
      this.failure = error;
    }
  }

  render() {
    if (this.failure !== null) {
      return problem(this.failure);
    }
    if (this.picture === null) {
      return html`<p class="loading" role="status">Loading …</p>`;
    }
    const { nodes, edges, more } = this.picture;
    return html`<p>An arrow leads from a member to its role. A member has the rights of all roles to its right.</p>
      ${graph("Nesting of the role", [...nodes.values()], edges)}
      ${more ? html`<p class="quiet">The picture shows a part: there are more members.</p>` : nothing}`;
  }
}

customElements.define("lg-nesting", Nesting);
