// The documents as a table: sorted by its headers, one page at a time. On narrow screens its rows are cards.
import { mayWrite } from "../../state.js";
import { t } from "../../texts.js";
import { html } from "../../vendor/ui.js";
import { Waiting } from "../basics.js";
import { Pager } from "../pager.js";
import { keyOf, removed } from "../undo.js";
import { PAGE, ask, asked, chosen, filtered, listing, loading, sortBy, unfiltered } from "./listing.js";
import { pathOf, removeDocuments, reprocess } from "./row_actions.js";
import { Row } from "./row.js";

const COLUMNS = ["name", "file_type", "passages", "added", "status"];

export function Table() {
  const found = listing.value;
  if (!found) return loading.value ? html`<${Waiting} text=${t("documents.loading")} />` : null;
  const rows = found.documents.filter(({ id }) => !removed.value.has(keyOf(pathOf(id))));
  const total = found.total - (found.documents.length - rows.length);
  if (!rows.length && found.total <= PAGE) return html`<${Nothing} />`;
  const pages = Math.ceil(found.total / PAGE);
  return html`
    <p role="status">${t("documents.found", { n: total })}</p>
    ${mayWrite.value && html`<${Selection} rows=${rows} />`}
    <div class="table" role="region" aria-label=${t("nav.documents")} aria-busy=${loading.value ? "true" : "false"} tabindex="0">
      <table class="documents" role="table">
        <thead role="rowgroup">
          <tr role="row">
            ${mayWrite.value && html`<th role="columnheader" scope="col" class="pick"><${PickAll} rows=${rows} /></th>`}
            ${COLUMNS.map((key) => html`<${Column} key=${key} name=${key} />`)}
            ${mayWrite.value && html`<th role="columnheader" scope="col"><span class="hidden">${t("documents.actions")}</span></th>`}
          </tr>
        </thead>
        <tbody role="rowgroup">${rows.map((each) => html`<${Row} key=${each.id} document=${each} />`)}</tbody>
      </table>
    </div>
    <${Pager} page=${asked.value.page} pages=${pages} go=${(page) => ask({ page })} />
  `;
}

function Column({ name }) {
  const { sort, order } = asked.value;
  const sorted = sort === name ? { asc: "ascending", desc: "descending" }[order] : "none";
  const arrow = { ascending: "▲", descending: "▼", none: "" }[sorted];
  return html`
    <th role="columnheader" scope="col" aria-sort=${sorted}>
      <button type="button" class="sort" onClick=${() => sortBy(name)}>
        ${t(`documents.column.${name}`)} <span aria-hidden="true">${arrow}</span>
      </button>
    </th>
  `;
}

function Nothing() {
  if (filtered()) {
    return html`
      <p role="status">${t("documents.none_fits")}</p>
      <button class="small" onClick=${unfiltered}>${t("documents.show_all")}</button>
    `;
  }
  return html`<p class="empty" role="status">${mayWrite.value ? t("documents.empty") : t("documents.empty_read_only")}</p>`;
}

function PickAll({ rows }) {
  const all = rows.length > 0 && rows.every(({ id }) => chosen.value.has(id));
  const pick = () => (chosen.value = new Set(all ? [] : rows.map(({ id }) => id)));
  return html`<input type="checkbox" checked=${all} onChange=${pick} aria-label=${t("documents.pick_all")} />`;
}

function Selection({ rows }) {
  const picked = rows.filter(({ id }) => chosen.value.has(id));
  if (!picked.length) return null;
  return html`
    <section class="row" aria-label=${t("documents.picked", { n: picked.length })}>
      <span>${t("documents.picked", { n: picked.length })}</span>
      <button class="small outline" onClick=${() => reprocess(picked)}>${t("documents.reprocess")}</button>
      <button class="small outline danger" onClick=${() => removeDocuments(picked)}>${t("documents.delete")}</button>
    </section>
  `;
}
