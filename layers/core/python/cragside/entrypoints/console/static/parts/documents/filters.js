// What of the documents is listed: by a part of the name, by type, by status and by what was not read.
import { number, t } from "../../texts.js";
import { html } from "../../vendor/ui.js";
import { ask, askSoon, asked, listing, typed } from "./listing.js";

const STATUSES = ["pending", "searchable", "enriched", "failed"];

export function Filters() {
  const { status, file_type, unread } = asked.value;
  const types = Object.entries(listing.value?.file_types ?? {}).sort(([one], [other]) => one.localeCompare(other));
  const submit = (event) => {
    event.preventDefault();
    ask({});
  };
  return html`
    <search>
      <form class="row filters" onSubmit=${submit}>
        <label class="grow">
          ${t("documents.search")}
          <input type="search" value=${typed.value} placeholder=${t("documents.search.in")} onInput=${(event) => askSoon(event.target.value)} />
        </label>
        <label>
          ${t("documents.column.file_type")}
          <select onChange=${(event) => ask({ file_type: event.target.value })}>
            <option value="" selected=${!file_type}>${t("documents.all_types")}</option>
            ${types.map(([type, n]) => html`<option value=${type} selected=${type === file_type}>${type} (${number(n)})</option>`)}
          </select>
        </label>
        <label>
          ${t("documents.column.status")}
          <select onChange=${(event) => ask({ status: event.target.value })}>
            <option value="" selected=${!status}>${t("documents.all_statuses")}</option>
            ${STATUSES.map((each) => html`<option value=${each} selected=${each === status}>${t(`documents.status.${each}`)}</option>`)}
          </select>
        </label>
        <label>
          ${t("documents.reading")}
          <select onChange=${(event) => ask({ unread: event.target.value })}>
            <option value="" selected=${!unread}>${t("documents.reading.all")}</option>
            <option value="true" selected=${Boolean(unread)}>${t("documents.reading.partly")}</option>
          </select>
        </label>
      </form>
    </search>
  `;
}
