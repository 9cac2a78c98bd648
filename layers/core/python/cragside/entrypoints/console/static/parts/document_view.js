// A document's text, opened where a passage stands, with the passage and its best strip marked.
import { call, isAbort } from "../api.js";
import { opened } from "../state.js";
import { t } from "../texts.js";
import { html, useEffect, useRef, useState } from "../vendor/ui.js";
import { Dialog, Failure, Waiting } from "./basics.js";
import { unitsAfter } from "./code_points.js";
import { atPage, hostOf, isWeb } from "./web_address.js";

// Characters shown before and after the place; a document may have millions.
const AROUND = 20_000;

export function DocumentView() {
  const { id, passage, strip } = opened.value;
  const [text, setText] = useState(null);
  const [facts, setFacts] = useState(null);
  const [failure, setFailure] = useState(null);
  useEffect(() => {
    const leaving = new AbortController();
    const route = `v1/documents/${encodeURIComponent(id)}`;
    call("GET", `${route}/content`, { query: { passage }, signal: leaving.signal })
      .then(setText)
      .catch((error) => isAbort(error) || setFailure(error));
    // Only for the link to the original. Without them, the text is still there.
    call("GET", route, { signal: leaving.signal }).then(setFacts, () => {});
    return () => leaving.abort();
  }, [id, passage]);
  const close = () => (opened.value = null);
  // The Back button leads away from what was opened.
  useEffect(() => {
    addEventListener("hashchange", close);
    return () => removeEventListener("hashchange", close);
  }, []);
  return html`
    <${Dialog} title=${text?.name ?? t("document")} close=${close} wide>
      ${failure && html`<${Failure} error=${failure} />`}
      ${!text && !failure && html`<${Waiting} text=${t("loading.document")} />`}
      ${text && facts && html`<${Original} facts=${facts} page=${text.passage?.page} />`}
      ${text && html`<${Text} document=${text} strip=${strip} />`}
    <//>
  `;
}

function Original({ facts, page }) {
  if (!isWeb(facts.source)) return null;
  const shown = facts.file_type === "pdf" ? page : null;
  const told = shown ? t("document.original_page", { page: String(shown) }) : t("document.original");
  return html`<p><a href=${atPage(facts.source, shown)} target="_blank" rel="noopener noreferrer">${told} (${hostOf(facts.source)})</a></p>`;
}

function Text({ document, strip }) {
  const { text, passage } = document;
  const place = passage?.start === null ? null : passage;
  const start = place ? unitsAfter(text, place.start) : 0;
  const end = place ? unitsAfter(text, place.end - place.start, start) : 0;
  const [from, setFrom] = useState(Math.max(0, start - AROUND));
  const [to, setTo] = useState(Math.min(text.length, end + AROUND));
  const mark = useRef(null);
  useEffect(() => mark.current?.scrollIntoView({ block: "center" }), []);
  // The strip counts from the passage's beginning.
  const first = strip && place ? unitsAfter(text, strip.start, start) : start;
  const last = strip && place ? Math.min(end, unitsAfter(text, strip.end - strip.start, first)) : start;
  const where = [passage?.page && t("page", { page: String(passage.page) }), passage?.section].filter(Boolean).join(", ");
  return html`
    ${where && html`<p class="where">${where}</p>`}
    ${passage && !place && html`<p>${t("document.no_place")}</p>`}
    ${from > 0 && html`<button class="small outline" onClick=${() => setFrom(Math.max(0, from - AROUND))}>${t("document.before")}</button>`}
    <div class="text" tabindex="0" role="document" aria-label=${document.name}>
      ${text.slice(from, start)}
      ${place && html`<mark class="passage" ref=${mark}>${text.slice(start, first)}<strong>${text.slice(first, last)}</strong>${text.slice(last, end)}</mark>`}
      ${text.slice(end, to)}
    </div>
    ${to < text.length && html`<button class="small outline" onClick=${() => setTo(Math.min(text.length, to + AROUND))}>${t("document.after")}</button>`}
  `;
}
