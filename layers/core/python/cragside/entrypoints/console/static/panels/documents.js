// Documents: what the workspace knows, adding to it, and what went wrong.
import { AddForm } from "../parts/documents/add_form.js";
import { DeadLetters, loadDead } from "../parts/documents/dead_letters.js";
import { Filters } from "../parts/documents/filters.js";
import { changes, unfinished } from "../parts/documents/items.js";
import { asking, enter, failure, listing, load, unsettled } from "../parts/documents/listing.js";
import { Progress } from "../parts/documents/progress.js";
import { Table } from "../parts/documents/table.js";
import { Failure } from "../parts/basics.js";
import { NoChange } from "../parts/write_access.js";
import { link, mayWrite, openDocument, opened, route } from "../state.js";
import { t } from "../texts.js";
import { html, useEffect, useRef } from "../vendor/ui.js";

const REFRESHED_AFTER_MS = 2500;

export function Documents() {
  useEffect(() => {
    enter();
    return refreshing();
  }, []);
  useDeepLink();
  return html`
    <h1>${t("nav.documents")}</h1>
    <${NoChange} />
    ${mayWrite.value && html`<${AddForm} />`}
    <${Progress} />
    <section aria-labelledby="list-title">
      <h2 id="list-title" tabindex="-1">${t("documents.list")}</h2>
      ${(listing.value || !failure.value) && html`<${Filters} />`}
      ${failure.value && html`<${Failure} error=${failure.value} retry=${() => load()} />`}
      <${Table} />
    </section>
    <${DeadLetters} />
  `;
}

// Asks again while anything changes by itself, unless nobody looks. Answers how to end that.
function refreshing() {
  let seen = changes.value;
  let busy = false;
  const timer = setInterval(async () => {
    const working = unfinished() > 0 || unsettled();
    // Once more after the end, for the last changes.
    if (!(working || busy || changes.value !== seen) || document.hidden) return;
    // A slow service would never finish an answer, and what somebody asks for comes first.
    if (asking()) return;
    busy = working;
    seen = changes.value;
    await load({ quiet: true });
    if (!busy) await loadDead();
  }, REFRESHED_AFTER_MS);
  return () => clearInterval(timer);
}

// #/documents?open=ID&passage=PID opens a document. Closed, it leaves the address, so that the link works again.
function useDeepLink() {
  const { query } = route.value;
  const id = query.get("open");
  const passage = query.get("passage") ?? undefined;
  const shown = useRef(null);
  useEffect(() => {
    if (!id) return;
    shown.current = openDocument(id, passage);
  }, [id, passage]);
  const now = opened.value;
  useEffect(() => {
    if (!opened.value && shown.current) {
      shown.current = null;
      location.replace(link("documents"));
    }
  }, [now]);
}
