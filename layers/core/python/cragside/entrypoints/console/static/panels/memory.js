// Memory: what was remembered of conversations, search in it, and forgetting.
import { Exchange, pathOf } from "../parts/memory/exchange.js";
import { PAGE, enter, failure, go, leaveSearch, listing, loading, page, question, recalled, search, tryAgain } from "../parts/memory/listing.js";
import { Failure, Waiting } from "../parts/basics.js";
import { Pager } from "../parts/pager.js";
import { keyOf, removed } from "../parts/undo.js";
import { NoChange } from "../parts/write_access.js";
import { access } from "../state.js";
import { score, t } from "../texts.js";
import { html, useEffect } from "../vendor/ui.js";

export function Memory() {
  useEffect(() => void enter(), []);
  const known = listing.value;
  return html`
    <h1>${t("nav.memory")}</h1>
    <p>${t("memory.what")}</p>
    <${NoChange} />
    ${known?.total > 0 && html`<${Search} />`}
    ${failure.value && html`<${Failure} error=${failure.value} retry=${tryAgain} />`}
    <section aria-labelledby="memory-title" aria-busy=${loading.value ? "true" : "false"}>
      <h2 id="memory-title" tabindex="-1">${t(recalled.value ? "memory.found" : "memory.list")}</h2>
      ${loading.value && !known && html`<${Waiting} text=${t("memory.loading")} />`}
      ${recalled.value ? html`<${Recalled} />` : known && html`<${List} known=${known} />`}
    </section>
  `;
}

function Search() {
  const submit = (event) => {
    event.preventDefault();
    search();
  };
  return html`
    <search>
      <form class="row filters" onSubmit=${submit}>
        <label class="grow">
          ${t("memory.search")}
          <input type="search" required value=${question.value} placeholder=${t("memory.search.in")} onInput=${(event) => (question.value = event.target.value)} />
        </label>
        <button type="submit" class="small" disabled=${!question.value.trim()}>${t("memory.search.run")}</button>
        ${recalled.value && html`<button type="button" class="small outline" onClick=${leaveSearch}>${t("memory.search.leave")}</button>`}
      </form>
    </search>
  `;
}

function List({ known }) {
  const shown = known.memories.filter(({ id }) => !removed.value.has(keyOf(pathOf(id))));
  const total = known.total - (known.memories.length - shown.length);
  if (!total) return html`<${Empty} />`;
  return html`
    <p role="status">${t("memory.count", { n: total })}</p>
    <ul class="exchanges">
      ${shown.map(({ id, at, text, searchable }) => html`<${Exchange} key=${id} id=${id} at=${at} text=${text} note=${searchable ? "" : t("memory.pending")} />`)}
    </ul>
    <${Pager} page=${page.value} pages=${Math.ceil(known.total / PAGE)} go=${go} />
  `;
}

// Without a conversation there is nothing to do here, so it says where they come from, unless none can come.
function Empty() {
  if (access.value?.read_only) return html`<p class="empty" role="status">${t("documents.empty_read_only")}</p>`;
  return html`
    <div class="empty">
      <p role="status">${t("memory.empty")}</p>
      <ul>
        <li>${t("memory.empty.proxy")} <code>RAG_STORE_EXCHANGES=true</code></li>
        <li>${t("memory.empty.route")} <code>POST /v1/memories</code></li>
      </ul>
    </div>
  `;
}

function Recalled() {
  const { query, documents, degraded } = recalled.value;
  const shown = exchangesOf(documents).filter(({ id }) => !removed.value.has(keyOf(pathOf(id))));
  return html`
    <p role="status">${t("memory.recalled", { n: shown.length, query })}</p>
    ${degraded.map(({ component, reason }) => html`<p class="notice warning">${t("ask.degraded", { component, reason })}</p>`)}
    <ul class="exchanges">
      ${shown.map(({ id, at, text, best }) => html`<${Exchange} key=${id} id=${id} at=${at} text=${text} note=${best === null ? "" : t("memory.score", { score: score(best) })} />`)}
    </ul>
  `;
}

// Passages come best first. Those of one exchange are told together.
function exchangesOf(passages) {
  const found = new Map();
  for (const { title, content, score: best, metadata } of passages) {
    const id = metadata.documentId;
    const known = found.get(id);
    const at = momentIn(title) ?? metadata.uploadTimestamp;
    found.set(id, known ? { ...known, text: `${known.text}\n…\n${content}` } : { id, at, text: content, best });
  }
  return [...found.values()];
}

// The name of an exchange tells when it was, in UTC: conv_20260107_100000.txt.
function momentIn(name) {
  const [, ...parts] = name.match(/^conv_(\d{4})(\d\d)(\d\d)_(\d\d)(\d\d)(\d\d)/) ?? [];
  if (!parts.length) return null;
  const [year, month, day, hour, minute, second] = parts;
  return `${year}-${month}-${day}T${hour}:${minute}:${second}Z`;
}
