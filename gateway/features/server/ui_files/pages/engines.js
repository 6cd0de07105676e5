// SPDX-License-Identifier: Apache-2.0
// Engines of a warehouse: which ones are trusted to hide rows and columns, what their probes showed, and which ones may
// act for users.

import { html, nothing } from "lit";

import { change, get, pages, path } from "../core/api.js";
import { projectOf, projects, warehouses } from "../core/objects.js";
import { Page } from "../core/page.js";
import { openDialog } from "../parts/dialog.js";
import { field, projectChoice, warehouseChoice } from "../parts/forms.js";
import { asCode, title } from "../parts/heading.js";
import { badge, copied, empty, identityOf, principal, when } from "../parts/small.js";

const PRIVILEGES = ["enforcer", "delegate"];

/** @param {{user?: string | null, role?: string | null}} who */
function keyOf(who) {
  return who.role ? `role/${who.role}` : `user/${who.user}`;
}

/** Return the grants of engines on a place; none if the caller may not read them. @param {string} place @param {string} project */
async function grantsOn(place, project) {
  const { rows } = await pages(`${place}/grants?pageSize=500`, "grants", { project });
  return rows.filter((each) => PRIVILEGES.includes(each.privilege)).map((each) => ({ ...each, place }));
}

/** Return one row for each engine, with its grants and the result of its probe. @param {any[]} grants @param {any[]} probes */
function engines(grants, probes) {
  /** @type {Map<string, {who: any, grants: any[], probe: any}>} */
  const found = new Map();
  const entry = (/** @type {any} */ who) => {
    const key = keyOf(who);
    const row = found.get(key) ?? { who, grants: [], probe: null };
    found.set(key, row);
    return row;
  };
  grants.forEach((each) => entry(each.principal).grants.push(each));
  probes.forEach((each) => (entry({ user: each.engine }).probe = each));
  return [...found.values()];
}

/** @param {any} row */
function trust({ probe, grants, who }) {
  if (probe?.trusted) {
    return probe.warned ? badge("trusted for now", "warn") : badge("trusted", "good");
  }
  if (probe?.verdict === "failed") {
    return badge("failed its probe", "bad");
  }
  const enforces = grants.some((/** @type {any} */ each) => each.privilege === "enforcer");
  return enforces ? badge(who.role ? "by its members" : probe === null ? "not probed" : "probe expired", "warn") : badge("not an enforcer");
}

/** Return the users for which a delegate acts. @param {any} actsFor */
function limits(actsFor) {
  const { users, roles, administrators, networks } = actsFor ?? {};
  const named = [...(users ?? []), ...(roles ?? []).map((/** @type {string} */ each) => `members of role/${each}`)];
  const who = named.length === 0 ? "every user" : named.join(", ");
  return who + (administrators ? ", also administrators" : ", but no administrators") + (networks ? `, from ${networks.join(", ")}` : "");
}

export default class EnginesPage extends Page {
  static properties = { ...Page.properties, notice: { state: true } };

  constructor() {
    super();
    this.notice = "";
  }

  /** @param {import("../core/router.js").Route} from @param {import("../core/router.js").Route} to */
  same(from, to) {
    return super.same(from, to) && from.query.warehouse === to.query.warehouse;
  }

  /** @param {import("../core/router.js").Route} route */
  async load({ query }) {
    const [all, project] = await Promise.all([projects(), projectOf(query.project)]);
    const id = project?.["project-id"] ?? "";
    const rows = project === null ? [] : await warehouses(id);
    const row = rows.find((each) => each["warehouse-id"] === query.warehouse) ?? rows[0];
    if (row === undefined) {
      return { all, id, rows, row };
    }
    const place = "/management/v1" + path`/warehouse/${row["warehouse-id"]}`;
    const [here, above, probes] = await Promise.all([
      grantsOn(place, id),
      // Those that may read only the warehouse see its own grants.
      grantsOn("/management/v1/project", id).catch(() => []),
      get(`${place}/engine-probe`).catch(() => null),
    ]);
    return { all, id, rows, row, place, engines: engines([...here, ...above], probes?.["engine-probes"] ?? []), mayProbe: probes !== null };
  }

  /** @param {any} data */
  body({ all, id, rows, row, place, engines, mayProbe }) {
    const about = "An engine that is an enforcer gets whole files, and must hide the rows and columns that a user may not read. A probe tests it. A delegate may act for users.";
    if (row === undefined) {
      return html`${title("Engines", about)} ${projectChoice(all, id)} ${empty("No warehouse here that you may see.")}`;
    }
    return html`${title("Engines", about)} ${projectChoice(all, id)} ${warehouseChoice(rows, row["warehouse-id"])}
      <p role="status">${this.notice}</p>
      <p class="buttons"><button type="button" ?disabled=${!mayProbe} title=${mayProbe ? "" : "needs the right to grant “enforcer”"} @click=${() => this.trustEngine(place, row)}>Trust an engine …</button></p>
      ${mayProbe ? nothing : html`<p class="quiet">Only those that may grant “enforcer” on the warehouse see the results of probes.</p>`}
      ${engines.length === 0 ? empty(`No engine is an enforcer or a delegate in ${row.name}.`) : html`<table>
        <caption>Engines in ${row.name}</caption>
        <thead><tr><th scope="col">Engine</th><th scope="col">Trust</th><th scope="col">Last probe</th><th scope="col">Trusted until</th><th scope="col">Acts for</th><th scope="col">Action</th></tr></thead>
        <tbody>${engines.map((/** @type {any} */ each) => this.line(each, row, mayProbe))}</tbody>
      </table>`}
      ${asCode()}`;
  }

  /** @param {any} each @param {any} row @param {boolean} mayProbe */
  line(each, row, mayProbe) {
    const { who, probe, grants } = each;
    const delegates = grants.filter((/** @type {any} */ grant) => grant.privilege === "delegate");
    const inherited = grants.some((/** @type {any} */ grant) => grant.resource.type === "project");
    return html`<tr>
      <th scope="row">${principal(who)} ${inherited ? html`<span class="quiet">granted on the project</span>` : nothing}</th>
      <td>${trust(each)}</td>
      <td>${probe?.["probed-at"] ? html`${when(probe["probed-at"])} ${probe.detail ?? ""}` : "—"}${probe?.["open-until"] ? html` ${badge("open", "warn")} until ${when(probe["open-until"])}` : nothing}</td>
      <td>${when(probe?.["valid-until"] ?? probe?.["warn-until"])}</td>
      <td>${delegates.length === 0 ? "—" : delegates.map((/** @type {any} */ grant) => html`<div>${limits(grant["acts-for"])}; ends ${when(grant["expires-at"], "never")}</div>`)}</td>
      <td>
        ${who.user ? html`<button type="button" class="small" ?disabled=${!mayProbe} @click=${() => this.probe(who.user, row)}>Probe …</button>` : nothing}
        ${grants.length === 0 ? nothing : html`<button type="button" class="small danger" @click=${() => this.end(each)}>End trust …</button>`}
      </td>
    </tr>`;
  }

  /** @param {string} notice */
  changed(notice) {
    this.notice = notice;
    void this.reload();
  }

  /** @param {string} engine @param {any} row */
  probe(engine, row) {
    void openDialog({
      title: "Probe an engine",
      action: "Close",
      submit: async () => undefined,
      body: html`<p>A probe needs a table of random values that only you can write. The command line creates it, lets the gateway read it through the engine, and drops it:</p>
        <p>${copied(`lakegate engine probe --engine ${engine} --on warehouse/${row.name}`, "the command")}</p>
        <p>A failed probe ends the trust at once. The operator sets the address of the engine (LAKEGATE__ENGINE_PROBES__ENGINES).</p>`,
    });
  }

  /** @param {string} place @param {any} row */
  trustEngine(place, row) {
    void openDialog({
      title: `Trust an engine in ${row.name}`,
      action: "Grant",
      body: html`${field({ name: "engine", label: "Engine", required: true, help: "Its user id, such as oidc~trino." })}
        ${field({ name: "delegate", label: "It may act for every user", type: "checkbox", help: "The privilege “delegate”: the engine can use all rights of the users that it names. Limit it on the Access tab of the warehouse." })}
        ${field({ name: "reason", label: "Reason", required: true })}
        <p>It becomes an enforcer: after a passed probe it gets whole files of restricted tables, and must hide the rest.</p>`,
      submit: ({ engine, delegate, reason }) => {
        const writes = ["enforcer", ...(delegate === "true" ? ["delegate"] : [])].map((privilege) => ({ privilege, principal: identityOf(engine), reason }));
        return change("POST", `${place}/grants`, { writes });
      },
    }).then((done) => done && this.changed("Granted. Probe the engine now: without a passed probe it is not trusted."));
  }

  /** @param {any} each */
  end({ who, grants }) {
    void openDialog({
      title: "End the trust of an engine",
      action: "End trust",
      danger: true,
      body: html`<p>${keyOf(who)} loses ${grants.map((/** @type {any} */ grant) => `“${grant.privilege}” on the ${grant.resource.type}`).join(" and ")}, from the next request on. Users that read
        restricted tables through it are refused. Credentials that it holds stay valid until they expire: see “Live credentials” of the warehouse. You can grant it again.</p>`,
      submit: async () => {
        for (const place of new Set(grants.map((/** @type {any} */ grant) => grant.place))) {
          const here = grants.filter((/** @type {any} */ grant) => grant.place === place);
          const project = here[0].resource.type === "project" ? { project: here[0].resource["project-id"] } : {};
          await change("POST", `${place}/grants`, { deletes: here.map((/** @type {any} */ grant) => ({ privilege: grant.privilege, principal: grant.principal })) }, project);
        }
      },
    }).then((done) => done && this.changed(`The trust of ${keyOf(who)} has ended.`));
  }
}
