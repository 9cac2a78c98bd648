// Graph: find an entity, see what it is connected with, and read the passages that say so.
import { call } from "../api.js";
import { Failure, Waiting } from "../parts/basics.js";
import { EntityFinder } from "../parts/entity_finder.js";
import { GraphCanvas, colourOf } from "../parts/graph_canvas.js";
import { GraphPassages } from "../parts/graph_passages.js";
import { useLoaded } from "../parts/loaded.js";
import { link, route } from "../state.js";
import { t } from "../texts.js";
import { html, useState } from "../vendor/ui.js";

const OVERVIEW = [100, 300, 1000, 2000];
const MOST_LISTED = 200;

const go = (query) => (location.hash = link("graph", query));

export function GraphPanel() {
  const entity = route.value.query.get("entity");
  const depth = Number(route.value.query.get("depth")) === 2 ? 2 : 1;
  const [limit, setLimit] = useState(300);
  const [type, setType] = useState("");
  const [relationship, setRelationship] = useState(null);
  const overview = useLoaded((signal) => call("GET", "v1/graph", { query: { limit, type }, signal }), [limit, type]);
  const near = useLoaded(
    (signal) =>
      entity
        ? call("GET", "v1/graph/neighbourhood", { query: { entity, depth, limit: 200, type }, signal })
        : Promise.resolve(null),
    [entity, depth, type],
  );
  const choose = (name) => (setRelationship(null), go({ entity: name, depth }));
  const shown = entity ? near : overview;
  const graph = shown.value;
  const types = Object.keys(overview.value?.types ?? {});
  if (overview.value && !overview.value.total && !type) return html`<h1>${t("nav.graph")}</h1><${Empty} />`;
  return html`
    <h1>${t("nav.graph")}</h1>
    <div class="row">
      <${EntityFinder} type=${type} onEntity=${choose} />
      <label class="inline">
        ${t("graph.type")}
        <select value=${type} onChange=${(event) => setType(event.target.value)}>
          <option value="">${t("graph.all_types")}</option>
          ${Object.entries(overview.value?.types ?? {}).map(
            ([name, count]) => html`<option value=${name} selected=${name === type}>${name || t("graph.untyped")} (${count})</option>`,
          )}
        </select>
      </label>
      ${entity
        ? html`<${Steps} entity=${entity} depth=${depth} />`
        : html`<${Size} limit=${limit} onLimit=${setLimit} />`}
    </div>
    ${shown.failure && html`<${Failure} error=${shown.failure} retry=${shown.reload} />`}
    ${!graph && !shown.failure && html`<${Waiting} text=${t("graph.loading")} />`}
    ${graph &&
    html`
      <p class="where" role="status">${told(graph, entity)}</p>
      <div class="beside">
        <div>
          <${GraphCanvas} graph=${graph} types=${types} chosen=${entity} onEntity=${choose} onRelationship=${(source, target) => setRelationship({ source, target })} />
          <${Legend} types=${types} />
        </div>
        <div>
          ${entity && html`<${Details} name=${entity} graph=${graph} onRelationship=${setRelationship} />`}
          ${(relationship || entity) && html`<${GraphPassages} key=${JSON.stringify(relationship ?? entity)} query=${relationship ?? { entity }} />`}
          ${!entity && html`<${Entities} graph=${graph} />`}
        </div>
      </div>
    `}
  `;
}

function Steps({ entity, depth }) {
  return html`
    <fieldset class="inline">
      <legend class="hidden">${t("graph.steps")}</legend>
      ${[1, 2].map(
        (each) => html`
          <label><input type="radio" name="depth" checked=${each === depth} onChange=${() => go({ entity, depth: each })} />${t("graph.depth", { n: each })}</label>
        `,
      )}
      <a href=${link("graph")}>${t("graph.overview")}</a>
    </fieldset>
  `;
}

function Size({ limit, onLimit }) {
  return html`
    <label class="inline">
      ${t("graph.size")}
      <select onChange=${(event) => onLimit(Number(event.target.value))}>
        ${OVERVIEW.map((each) => html`<option value=${each} selected=${each === limit}>${each}</option>`)}
      </select>
    </label>
  `;
}

function Details({ name, graph, onRelationship }) {
  const entity = graph.entities.find((each) => each.name === name) ?? graph.entities[0];
  const edges = graph.relationships.filter(({ source, target }) => source === entity.name || target === entity.name);
  return html`
    <h2>${entity.name}</h2>
    <p><span class="badge">${entity.type || t("graph.untyped")}</span> ${t("graph.mentions", { n: entity.mentions })}</p>
    ${entity.description && html`<p class="text">${entity.description}</p>`}
    <h3>${t("graph.relationships", { n: edges.length })}</h3>
    <ul class="plain">
      ${edges.map(({ source, target, type }) => {
        const other = source === entity.name ? target : source;
        return html`
          <li>
            <a href=${link("graph", { entity: other })}>${other}</a>
            ${" "}<small>${type}</small>${" "}
            <button class="small outline" aria-label=${t("graph.why_between", { source, target })} onClick=${() => onRelationship({ source, target })}>${t("graph.why")}</button>
          </li>
        `;
      })}
    </ul>
  `;
}

function Entities({ graph }) {
  return html`
    <h2>${t("graph.best_connected")}</h2>
    <ul class="plain scroll" tabindex="0" aria-label=${t("graph.best_connected")}>
      ${graph.entities.slice(0, MOST_LISTED).map(
        ({ name, type }) => html`<li><a href=${link("graph", { entity: name })}>${name}</a> <small>${type}</small></li>`,
      )}
    </ul>
  `;
}

const Legend = ({ types }) => html`
  <ul class="legend" aria-label=${t("graph.legend")}>
    ${types.slice(0, 7).map(
      (type) => html`<li><svg viewBox="0 0 10 10" aria-hidden="true"><circle cx="5" cy="5" r="5" fill=${colourOf(types, type)} /></svg>${type || t("graph.untyped")}</li>`,
    )}
  </ul>
`;

const Empty = () => html`<p>${t("graph.empty")} <a href=${link("documents")}>${t("welcome.documents")}</a></p>`;

function told({ entities, relationships, capped, total }, entity) {
  const sizes = t("graph.shown", { n: entities.length, m: relationships.length });
  if (!capped) return sizes;
  return `${sizes} ${entity ? t("graph.capped_near") : t("graph.capped", { total: total ?? 0 })}`;
}
