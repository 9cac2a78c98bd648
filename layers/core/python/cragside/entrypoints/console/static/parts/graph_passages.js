// The passages that name an entity, or that say that two are related.
import { call } from "../api.js";
import { openDocument } from "../state.js";
import { t } from "../texts.js";
import { html } from "../vendor/ui.js";
import { Failure, Waiting } from "./basics.js";
import { useLoaded } from "./loaded.js";

export function GraphPassages({ query }) {
  const { value, failure, reload } = useLoaded((signal) => call("GET", "v1/graph/passages", { query, signal }));
  const names = query.entity ? [query.entity] : [query.source, query.target];
  const title = query.entity ? t("graph.passages") : t("graph.passages_between", query);
  return html`
    <section aria-live="polite">
      <h3>${title}</h3>
      ${failure && html`<${Failure} error=${failure} retry=${reload} />`}
      ${!value && !failure && html`<${Waiting} text=${t("graph.loading_passages")} />`}
      ${value && !value.passages.length && html`<p>${t("graph.no_passages")}</p>`}
      <ul class="plain">
        ${value?.passages.map(
          ({ id, document, title: heading, name, text, page, section }) => html`
            <li>
              <button class="small outline" onClick=${() => openDocument(document, id)}>${heading || name}</button>
              <small class="where">${[page && t("page", { page: String(page) }), section].filter(Boolean).join(" · ")}</small>
              <blockquote class="text">${marked(text, names)}</blockquote>
            </li>
          `,
        )}
      </ul>
      ${value?.total > value?.passages.length && html`<p>${t("graph.more_passages", { n: value.total - value.passages.length })}</p>`}
    </section>
  `;
}

// A name is not marked inside a longer word, in scripts that write words apart: those with capitals.
const IN_WORD = "[\\p{Lu}\\p{Ll}\\p{N}]";

// The text with each of the names marked, in any case and across the end of a line.
function marked(text, names) {
  const longestFirst = [...names].sort((one, other) => other.length - one.length);
  const patterns = longestFirst.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+"));
  // Split by a group, every second part is one of the names.
  const name = new RegExp(`(?<!${IN_WORD})(${patterns.join("|")})(?!${IN_WORD})`, "iu");
  return text.split(name).map((part, index) => (index % 2 ? html`<mark>${part}</mark>` : part));
}
