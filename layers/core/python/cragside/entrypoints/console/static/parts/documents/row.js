// A document in the list, with what can be done with it.
import { mayWrite, openDocument } from "../../state.js";
import { date, number, t } from "../../texts.js";
import { html } from "../../vendor/ui.js";
import { hostOf, isWeb } from "../web_address.js";
import { chosen } from "./listing.js";
import { removeDocuments, reprocess } from "./row_actions.js";

export function Row({ document }) {
  const { id, label, file_type, passages, created_at, status } = document;
  return html`
    <tr role="row" id=${`row-${id}`} class=${status}>
      ${mayWrite.value && html`<td role="cell" class="pick"><${Pick} document=${document} /></td>`}
      <th role="rowheader" scope="row">
        <button type="button" class="open" onClick=${() => openDocument(id)} title=${t("documents.open")}><bdi>${label}</bdi></button>
        <${Origin} document=${document} />
        <${Problem} document=${document} />
        ${document.unread && html`<small class="problem">${t("additions.unread", { what: document.unread })}</small>`}
      </th>
      <td role="cell"><span class="what">${t("documents.column.file_type")}: </span>${file_type}</td>
      <td role="cell" class="count"><span class="what">${t("documents.column.passages")}: </span>${number(passages)}</td>
      <td role="cell"><span class="what">${t("documents.column.added")}: </span><time datetime=${created_at}>${date(created_at)}</time></td>
      <td role="cell"><span class=${`badge ${status}`}>${t(`documents.status.${status}`)}</span> <${Enrichment} document=${document} /></td>
      ${mayWrite.value && html`<td role="cell" class="acts"><${Acts} document=${document} /></td>`}
    </tr>
  `;
}

function Pick({ document: { id, label } }) {
  const pick = (event) => {
    const rest = new Set(chosen.value);
    if (event.target.checked) rest.add(id);
    else rest.delete(id);
    chosen.value = rest;
  };
  return html`<input type="checkbox" checked=${chosen.value.has(id)} onChange=${pick} aria-label=${t("documents.pick", { name: label })} />`;
}

// The title, and where it is from, if the name does not say it already.
function Origin({ document: { label, title, source, file_type } }) {
  const told = [title, source].filter((each) => each && each !== label && !isWeb(each));
  return html`
    ${told.length > 0 && html`<small><bdi>${told.join(" · ")}</bdi></small>`}
    ${isWeb(source) &&
    html`
      <small>
        <a href=${source} target="_blank" rel="noopener noreferrer">${t(file_type === "pdf" ? "documents.visit_pdf" : "documents.visit")} (${hostOf(source)})</a>
      </small>
    `}
  `;
}

function Problem({ document: { status, error } }) {
  if (status !== "failed") return null;
  return html`<small class="problem">${error} ${mayWrite.value ? t("documents.failed.remedy") : ""}</small>`;
}

function Enrichment({ document: { status, enrichment } }) {
  if (status !== "searchable" || !["pending", "processing", "mixed"].includes(enrichment)) return null;
  return html`<small>${t("documents.enriching")}</small>`;
}

function Acts({ document }) {
  const name = document.label;
  return html`
    <button class="small outline" aria-label=${t("documents.reprocess_one", { name })} onClick=${() => reprocess([document])}>
      ${t("documents.reprocess")}
    </button>
    <button class="small outline danger" aria-label=${t("documents.delete_one", { name })} onClick=${() => removeDocuments([document])}>
      ${t("documents.delete")}
    </button>
  `;
}
