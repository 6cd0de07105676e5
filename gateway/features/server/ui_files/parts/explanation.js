// SPDX-License-Identifier: Apache-2.0
// The explanation of a decision: the verdict, the graph of facts from the principal to the object, guardrails, data
// policies, and the smallest changes that would allow the action.

import { html, nothing } from "lit";

import { ask } from "../core/api.js";
import { words } from "../core/format.js";
import { address } from "../core/router.js";
import { graph } from "./graph.js";
import { openDialog } from "./dialog.js";
import { badge, when } from "./small.js";

/**
 * @typedef {{type: string, id: string, name?: string | null}} Party
 * @typedef {{kind: string, subject: Party, relation: string, object: Party, grants?: any[]}} Fact
 */

/** @type {Record<string, "good" | "bad" | "warn">} */
const VERDICTS = { allowed: "good", denied: "bad", restricted: "warn", depends: "warn" };
const REQUESTABLE = new Set(["namespace", "table", "view", "generic_table", "project", "warehouse", "role", "tag", "data_policy"]);
const IN_A_WAREHOUSE = new Set(["namespace", "table", "view", "generic_table"]);

/** @param {Party} each */
function keyOf(each) {
  return `${each.type}:${each.id}`;
}

/** Return the address of a party's page, as far as its id alone leads there. @param {Party} each */
function pageOfParty(each) {
  return ["user", "role", "tag"].includes(each.type) ? address(each.type, [encodeURIComponent(each.id)]) : undefined;
}

/** @param {Fact} fact */
function openFact(fact) {
  const grants = fact.grants ?? [];
  void openDialog({
    title: `${words(fact.relation)}: ${fact.kind}`,
    action: "Close",
    submit: async () => undefined,
    body: html`<dl class="facts">
      <dt>From</dt><dd>${fact.subject.type} ${fact.subject.name ?? fact.subject.id} <code>${fact.subject.id}</code></dd>
      <dt>To</dt><dd>${fact.object.type} ${fact.object.name ?? fact.object.id} <code>${fact.object.id}</code></dd>
      ${grants.map(
        (each) => html`<dt>Grant</dt>
          <dd>by <code>${each["granted-by"]}</code>, ${when(each["granted-at"])}${each.reason ? html`, because “${each.reason}”` : nothing},
            ends ${when(each["expires-at"], "never")}</dd>`,
      )}
    </dl>`,
  });
}

/** Draw the facts of all witnesses as a graph. @param {any} explanation */
function picture(explanation) {
  /** @type {Map<string, import("./graph.js").GraphNode>} */
  const nodes = new Map();
  /** @type {Map<string, import("./graph.js").GraphEdge>} */
  const edges = new Map();
  const add = (/** @type {Party} */ each) =>
    nodes.set(keyOf(each), { id: keyOf(each), kind: each.type.replace("_", " "), label: each.name ?? each.id, to: pageOfParty(each) });
  const witnesses = explanation.relationships.witnesses ?? [];
  witnesses.forEach((/** @type {{facts: Fact[]}} */ witness, /** @type {number} */ rank) => {
    for (const fact of witness.facts) {
      add(fact.subject);
      add(fact.object);
      const key = `${keyOf(fact.subject)} ${fact.relation} ${keyOf(fact.object)}`;
      if (!edges.has(key)) {
        edges.set(key, { from: keyOf(fact.subject), to: keyOf(fact.object), label: words(fact.relation), lit: rank === 0, open: () => openFact(fact) });
      }
    }
  });
  return graph("Facts that give the right", [...nodes.values()], [...edges.values()]);
}

/** @param {any} repair */
export function namesOf(repair) {
  return repair.grants
    .map((/** @type {any} */ each) => `${each.privilege} on ${each.object.type.replace("_", " ")} ${each.object.name || each.object.id} for ${each.principal.type} ${each.principal.name || each.principal.id}`)
    .join(" and ");
}

/** @param {any} repair */
function opens(repair) {
  const more = (repair.opens ?? []).filter((/** @type {any} */ each) => each.count > 0);
  return more.length === 0 ? "" : ` (opens also ${more.map((/** @type {any} */ each) => `${each.count} ${each.type}`).join(", ")})`;
}

/** Return the body of an access request. It names each object with all privileges of the repair on it. They are decided
 * together. @param {any} explanation @param {any} repair @param {string} reason */
export function requestOf(explanation, repair, reason) {
  const made = new Map();
  for (const { object, privilege } of repair.grants) {
    const kind = object.type.replace("_", "-");
    /** @type {Record<string, string>} */
    const on = { type: kind, [kind + "-id"]: object.id };
    if (explanation["warehouse-id"] !== undefined && IN_A_WAREHOUSE.has(object.type)) {
      on["warehouse-id"] = explanation["warehouse-id"];
    }
    const item = made.get(keyOf(object)) ?? { object: on, privileges: [] };
    item.privileges.push(privilege);
    made.set(keyOf(object), item);
  }
  return { items: [...made.values()], reason };
}

/** Return the path and the body that make the grants of a repair on one object. @param {any} explanation @param {any} grants */
function writesOf(explanation, grants) {
  const { object } = grants[0];
  const kind = object.type.replace("_", "-");
  const inside = IN_A_WAREHOUSE.has(object.type) ? `/warehouse/${explanation["warehouse-id"]}` : "";
  const place = { server: "/server", project: "/project", tag: `/tag-definition/${object.id}` }[object.type] ?? `${inside}/${kind}/${encodeURIComponent(object.id)}`;
  const more = object.type === "project" ? { project: object.id } : {};
  return { path: `/management/v1${place}/grants`, more };
}

/** Ask for the end and the reason, and make the grants of a repair. @param {any} explanation @param {any} repair @param {() => void} done */
function grantRepair(explanation, repair, done) {
  const ends = new Date(Date.now() + 7 * 86_400_000).toISOString().slice(0, 16);
  void openDialog({
    title: "Grant",
    action: "Grant",
    body: html`<p>${namesOf(repair)}${opens(repair)}</p>
      <p><label>Reason <input name="reason" required maxlength="900" /></label></p>
      <p><label>Ends <input name="ends" type="datetime-local" value=${ends} /></label> <span class="quiet">empty: never</span></p>`,
    submit: async ({ reason, ends }) => {
      const byObject = Object.values(Object.groupBy(repair.grants, (/** @type {any} */ each) => keyOf(each.object)));
      for (const grants of byObject) {
        const { path, more } = writesOf(explanation, grants);
        const writes = /** @type {any[]} */ (grants).map((each) => ({
          privilege: each.privilege,
          principal: { [each.principal.type]: each.principal.id },
          reason,
          ...(ends === "" ? {} : { "expires-at": new Date(ends).toISOString() }),
        }));
        await ask(path, { writes }, more);
      }
    },
  }).then((granted) => granted && done());
}

/** Ask for the reason, and request the grants of a repair. @param {any} explanation @param {any} repair @param {() => void} done */
function requestRepair(explanation, repair, done) {
  void openDialog({
    title: "Request access",
    action: "Send the request",
    body: html`<p>${namesOf(repair)}</p>
      <p><label>Reason <input name="reason" required maxlength="900" /></label></p>`,
    submit: ({ reason }) => ask("/management/v1/access/requests", requestOf(explanation, repair, reason)),
  }).then((sent) => sent && done());
}

/** @param {any} policies */
function guardrails(policies) {
  const lines = [
    ...(policies.reasons ?? []).map((/** @type {any} */ each) => each.message),
    ...(policies.rules ?? []).map((/** @type {any} */ each) => `Rule ${each.package}.${each.rule} in ${each.file}, line ${each.line}`),
    ...(policies["lifted-by"] ?? []).map((/** @type {any} */ each) => `It would be allowed with ${each.input} = ${each.value}`),
    ...(policies["depends-on"] ?? []).map((/** @type {any} */ each) => `It depends on ${each}`),
  ];
  return html`<h2>Guardrails ${badge(policies.allowed ? "allow" : "deny", policies.allowed ? "good" : "bad")}</h2>
    ${lines.length === 0 ? nothing : html`<ul>${lines.map((each) => html`<li>${each}</li>`)}</ul>`}`;
}

/**
 * Draw an explanation.
 * @param {any} explanation
 * @param {{me: string, granted: (text: string) => void, reasons?: string[]}} options `me` is the caller's user id;
 *   `granted` is called with a notice after a grant or a request
 */
export function drawExplanation(explanation, { me, granted, reasons = [] }) {
  const stated = new Set((explanation.policies?.reasons ?? []).map((/** @type {any} */ each) => `${each.code}: ${each.message}`));
  const earlier = reasons.filter((each) => !stated.has(each));
  return html`<section class="explanation" aria-label="Explanation">
    <p class="verdict">${badge(explanation.decision, VERDICTS[explanation.decision])} <strong id="summary">${explanation.summary}</strong></p>
    ${explanation.until ? html`<p>The right ends ${when(explanation.until)}.</p>` : nothing}
    ${(explanation["blocked-by"] ?? []).map((/** @type {string} */ each) => html`<p>Blocked by: ${each}</p>`)}
    ${explanation.relationships["another-grant"] ? html`<p>The right comes from facts that you may not read.</p>` : nothing}
    ${picture(explanation)}
    ${facts(explanation)}
    ${repairs(explanation, me, granted)}
    ${earlier.length === 0 ? nothing : html`<h2>Reasons at that time</h2><ul>${earlier.map((each) => html`<li>${each}</li>`)}</ul>`}
    ${explanation.policies ? guardrails(explanation.policies) : nothing}
    ${(explanation["data-policies"] ?? []).length === 0
      ? nothing
      : html`<h2>Data policies</h2>
          <ul>${explanation["data-policies"].map((/** @type {any} */ each) => html`<li><a href=${address("data-policy", [each.id])}>${each.name}</a></li>`)}</ul>`}
    ${explanation["groups-unknown"] ? html`<p class="quiet">Groups in the principal's own token are not known here and may give more rights.</p>` : nothing}
    <p class="quiet">As of ${when(explanation["as-of"])}</p>
  </section>`;
}

/** The facts as text, for readers who do not see the picture. @param {any} explanation */
function facts(explanation) {
  const witnesses = explanation.relationships.witnesses ?? [];
  if (witnesses.length === 0) {
    return nothing;
  }
  return html`<details><summary>The facts as text (${witnesses.length} ${witnesses.length === 1 ? "way" : "ways"})</summary>
    ${witnesses.map(
      (/** @type {{facts: Fact[]}} */ each) => html`<ol>
        ${each.facts.map(
          (fact) => html`<li>${fact.subject.type} ${fact.subject.name ?? fact.subject.id} — ${words(fact.relation)} → ${fact.object.type} ${fact.object.name ?? fact.object.id}
            <button type="button" class="small" @click=${() => openFact(fact)}>Open</button></li>`,
        )}
      </ol>`,
    )}
  </details>`;
}

/** @param {any} explanation @param {string} me @param {(text: string) => void} granted */
function repairs(explanation, me, granted) {
  const all = explanation.relationships.repairs ?? [];
  if (all.length === 0) {
    return nothing;
  }
  const isMine = (/** @type {any} */ repair) =>
    repair.grants.every((/** @type {any} */ each) => REQUESTABLE.has(each.object.type) && each.principal.type === "user" && each.principal.id === me);
  return html`<h2>What would allow it</h2>
    <ul class="repairs">
      ${all.map(
        (/** @type {any} */ repair) => html`<li>
          ${namesOf(repair)}<span class="quiet">${opens(repair)}</span>
          <button type="button" class="small" @click=${() => grantRepair(explanation, repair, () => granted("The grant was made."))}>Grant</button>
          ${isMine(repair)
            ? html`<button type="button" class="small" @click=${() => requestRepair(explanation, repair, () => granted("The request was sent. A principal that may make the grants decides."))}>Request</button>`
            : nothing}
        </li>`,
      )}
    </ul>`;
}
