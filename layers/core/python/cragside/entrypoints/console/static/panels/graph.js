// Graph: find an entity, see what it is connected with, and read the passages that say so.
import { call } from "../api.js";
import { Failure, Waiting } from "../parts/basics.js";
import { EntityFinder } from "../parts/entity_finder.js";
import { GraphCanvas, OTHERS, colourOf, hasColour } from "../parts/graph_canvas.js";
import { GraphPassages } from "../parts/graph_passages.js";
import { useLoaded } from "../parts/loaded.js";
import { NoChange } from "../parts/write_access.js";
import { link, mayWrite, route } from "../state.js";
import { t } from "../texts.js";
import { html, useEffect, useRef, useState } from "../vendor/ui.js";

const OVERVIEW = [100, 300, 1000, 2000];
const MOST_LISTED = 200;

const go = (entity, depth) => (location.hash = address(entity, depth));
const address = (entity, depth) => link("graph", { ...(entity && { entity }), ...(depth > 1 && { depth }) });

export function GraphPanel() {
  const entity = route.value.query.get("entity");
  const depth = Number(route.value.query.get("depth")) === 2 ? 2 : 1;
  const [limit, setLimit] = useState(300);
  const [type, setType] = useState("");
  const overview = useLoaded((signal) => call("GET", "v1/graph", { query: { limit, type }, signal }), [limit, type]);
  const near = useLoaded(
    (signal) =>
      entity
        ? call("GET", "v1/graph/neighbourhood", { query: { entity, depth, limit: 200, type }, signal })
        : Promise.resolve(null),
    [entity, depth, type],
  );
  // How often each type occurs, whatever is asked for. They stay while another overview comes.
  const types = useRef({});
  if (overview.value) types.current = overview.value.types;
  // Whoever opens the page stays at its beginning; whoever moves on in the graph goes on reading there.
  const begun = useRef(address(entity, depth));
  const moved = begun.current !== address(entity, depth);
  if (moved) begun.current = null;
  const shown = entity ? near : overview;
  const graph = shown.value;
  if (overview.value && !overview.value.total && !type) return html`<h1>${t("nav.graph")}</h1><${Empty} />`;
  return html`
    <h1>${t("nav.graph")}</h1>
    <div class="row">
      <${EntityFinder} type=${type} onEntity=${(name) => go(name, depth)} />
      <${Types} types=${types.current} type=${type} onType=${setType} />
      ${entity
        ? html`<${Steps} entity=${entity} depth=${depth} />`
        : html`<${Size} limit=${limit} onLimit=${setLimit} />`}
    </div>
    ${shown.failure && html`<${Failure} error=${shown.failure} retry=${shown.reload} />`}
    ${!graph && !shown.failure && html`<${Waiting} text=${t("graph.loading")} />`}
    ${graph && html`<${Shown} key=${entity} graph=${graph} types=${Object.keys(types.current)} entity=${entity} depth=${depth} moved=${moved} />`}
  `;
}

// The picture and what stands beside it. Its key is the entity, so another entity begins without a relationship.
function Shown({ graph, types, entity, depth, moved }) {
  const [relationship, setRelationship] = useState(null);
  const query = relationship ?? (entity ? { entity } : null);
  return html`
    <p class="where" role="status">${told(graph, entity)}</p>
    <div class="beside">
      <div>
        <${GraphCanvas} graph=${graph} types=${types} chosen=${entity} onEntity=${(name) => go(name, depth)} onRelationship=${(source, target) => setRelationship({ source, target })} />
        <${Legend} graph=${graph} types=${types} />
      </div>
      <div>
        ${entity && html`<${Details} name=${entity} graph=${graph} depth=${depth} moved=${moved} onRelationship=${setRelationship} />`}
        ${query && html`<${GraphPassages} key=${JSON.stringify(query)} query=${query} />`}
        ${!entity && html`<${BestConnected} graph=${graph} depth=${depth} moved=${moved} />`}
      </div>
    </div>
  `;
}

function Types({ types, type, onType }) {
  return html`
    <label class="inline">
      ${t("graph.type")}
      <select value=${type} onChange=${(event) => onType(event.target.value)}>
        <option value="">${t("graph.all_types")}</option>
        ${Object.entries(types).map(([name, count]) => html`<option value=${name} selected=${name === type}>${name} (${count})</option>`)}
      </select>
    </label>
  `;
}

function Steps({ entity, depth }) {
  return html`
    <fieldset class="inline">
      <legend class="hidden">${t("graph.steps")}</legend>
      ${[1, 2].map(
        (each) => html`
          <label><input type="radio" name="depth" checked=${each === depth} onChange=${() => go(entity, each)} />${t("graph.depth", { n: each })}</label>
        `,
      )}
      <a href=${address(null, depth)}>${t("graph.overview")}</a>
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

function Details({ name, graph, depth, moved, onRelationship }) {
  // A name is found in any case, and the entity that was asked for comes first.
  const entity = graph.entities.find((each) => each.name === name) ?? graph.entities[0];
  const edges = graph.relationships.filter(({ source, target }) => source === entity.name || target === entity.name);
  return html`
    <${Heading} text=${entity.name} moved=${moved} />
    <p><span class="badge">${entity.type || t("graph.untyped")}</span> ${t("graph.mentions", { n: entity.mentions })}</p>
    ${entity.description && html`<p class="text">${entity.description}</p>`}
    <h3>${t("graph.relationships", { n: edges.length })}</h3>
    <ul class="plain">
      ${edges.map(({ source, target, type }) => {
        const other = source === entity.name ? target : source;
        return html`
          <li>
            <a href=${address(other, depth)}>${other}</a>
            ${" "}<small>${type}</small>${" "}
            <button class="small outline" aria-label=${t("graph.why_between", { source, target })} onClick=${() => onRelationship({ source, target })}>${t("graph.why")}</button>
          </li>
        `;
      })}
    </ul>
    <details>
      <summary>${t("graph.around", { n: graph.entities.length - 1 })}</summary>
      <${Entities} entities=${graph.entities.filter((each) => each !== entity)} depth=${depth} label=${t("graph.around.list")} />
    </details>
  `;
}

function BestConnected({ graph, depth, moved }) {
  return html`
    <${Heading} text=${t("graph.best_connected")} moved=${moved} />
    <${Entities} entities=${graph.entities.slice(0, MOST_LISTED)} depth=${depth} label=${t("graph.best_connected")} />
  `;
}

const Entities = ({ entities, depth, label }) => html`
  <ul class="plain scroll" tabindex="0" aria-label=${label}>
    ${entities.map(({ name, type }) => html`<li><a href=${address(name, depth)}>${name}</a> <small>${type}</small></li>`)}
  </ul>
`;

// The link that led here is gone with the old graph, so the heading takes the focus that it had.
function Heading({ text, moved }) {
  const heading = useRef(null);
  useEffect(() => {
    if (moved && document.activeElement === document.body) heading.current.focus({ preventScroll: true });
  }, []);
  return html`<h2 ref=${heading} tabindex="-1">${text}</h2>`;
}

function Legend({ graph, types }) {
  const named = types.filter((type) => hasColour(types, type)).map((type) => [type, colourOf(types, type)]);
  const others = graph.entities.some(({ type }) => !hasColour(types, type));
  const shown = others ? [...named, [t("graph.others"), OTHERS]] : named;
  return html`
    <ul class="legend" aria-label=${t("graph.legend")}>
      ${shown.map(([text, colour]) => html`<li><svg viewBox="0 0 10 10" aria-hidden="true"><circle cx="5" cy="5" r="5" fill=${colour} /></svg>${text}</li>`)}
    </ul>
  `;
}

function Empty() {
  if (!mayWrite.value) return html`<${NoChange} /><p class="empty" role="status">${t("documents.empty_read_only")}</p>`;
  return html`<p>${t("graph.empty")} <a href=${link("documents")}>${t("welcome.documents")}</a></p>`;
}

function told({ entities, relationships, capped, total }, entity) {
  const sizes = `${t("graph.entities", { n: entities.length })}, ${t("graph.relationships", { n: relationships.length })}.`;
  if (!capped) return sizes;
  return `${sizes} ${entity ? t("graph.capped_near") : t("graph.capped", { total: total ?? 0 })}`;
}
