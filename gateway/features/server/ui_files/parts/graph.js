// SPDX-License-Identifier: Apache-2.0
// A graph with layers from left to right, as SVG. Each edge can be opened; the layout is dagre's.

import { html, nothing, svg } from "lit";
import { Graph, layout } from "@dagrejs/dagre";

/**
 * @typedef {{id: string, kind: string, label: string, to?: string}} GraphNode
 * @typedef {{from: string, to: string, label: string, lit?: boolean, open?: () => void}} GraphEdge
 */

const LETTER = 7.4;
const HEIGHT = 46;

/** @param {string} text @param {number} most */
function cut(text, most) {
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}

/** @param {{x: number, y: number}[]} points */
function line(points) {
  return points.map(({ x, y }, at) => `${at === 0 ? "M" : "L"}${x},${y}`).join(" ");
}

/**
 * Draw a graph, and the same as a list for readers who do not see it.
 * @param {string} label
 * @param {GraphNode[]} nodes
 * @param {GraphEdge[]} edges
 */
export function graph(label, nodes, edges) {
  if (nodes.length === 0) {
    return nothing;
  }
  const drawn = new Graph({ multigraph: true });
  drawn.setGraph({ rankdir: "LR", nodesep: 18, ranksep: 46, marginx: 8, marginy: 8 });
  drawn.setDefaultEdgeLabel(() => ({}));
  for (const each of nodes) {
    const letters = Math.min(34, Math.max(each.label.length, each.kind.length));
    drawn.setNode(each.id, { width: letters * LETTER + 26, height: HEIGHT });
  }
  edges.forEach((each, at) => {
    drawn.setEdge(each.from, each.to, { width: each.label.length * LETTER + 8, height: 18, labelpos: "c" }, String(at));
  });
  layout(drawn);
  const { width = 0, height = 0 } = drawn.graph();
  return html`<figure class="graph">
    <div class="scroll" tabindex="0" role="group" aria-label="${label}, picture">
      <svg width=${width} height=${height} viewBox="0 0 ${width} ${height}" role="group" aria-label=${label}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" /></marker>
        </defs>
        ${edges.map((each, at) => edge(each, drawn.edge(each.from, each.to, String(at))))}
        ${nodes.map((each) => node(each, drawn.node(each.id)))}
      </svg>
    </div>
  </figure>`;
}

/** @param {GraphEdge} each @param {any} placed */
function edge(each, placed) {
  return svg`<g class=${each.lit === false ? "edge" : "edge lit"}>
    <path d=${line(placed.points)} marker-end="url(#arrow)" fill="none"></path>
    ${
      each.open === undefined
        ? svg`<text x=${placed.x} y=${placed.y - 5} text-anchor="middle">${each.label}</text>`
        : svg`<a href="#" role="button" aria-label=${"Open: " + each.label} @click=${(/** @type {Event} */ event) => {
            event.preventDefault();
            each.open?.();
          }}><text x=${placed.x} y=${placed.y - 5} text-anchor="middle">${each.label}</text></a>`
    }
  </g>`;
}

/** @param {GraphNode} each @param {any} placed */
function node(each, placed) {
  const { x, y, width, height } = placed;
  const box = svg`<title>${each.label}</title><rect x=${x - width / 2} y=${y - height / 2} width=${width} height=${height} rx="8"></rect>
    <text class="kind" x=${x} y=${y - 6} text-anchor="middle">${each.kind}</text>
    <text x=${x} y=${y + 12} text-anchor="middle">${cut(each.label, 34)}</text>`;
  return each.to === undefined ? svg`<g class="node">${box}</g>` : svg`<g class="node"><a href=${each.to}>${box}</a></g>`;
}
