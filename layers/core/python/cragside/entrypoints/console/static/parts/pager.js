// Leads through the pages of a long list.
import { t } from "../texts.js";
import { html, useEffect, useRef } from "../vendor/ui.js";

export function Pager({ page, pages, go }) {
  const field = useRef(null);
  // The list is drawn anew while somebody types, so the field follows the page and nothing else.
  useEffect(() => {
    if (field.current) field.current.value = String(page + 1);
  }, [page, pages > 1]);
  if (pages <= 1) return null;
  const enter = (event) => {
    const wanted = Number.parseInt(event.target.value, 10);
    const next = Number.isNaN(wanted) ? page : Math.min(Math.max(wanted, 1), pages) - 1;
    event.target.value = String(next + 1);
    if (next !== page) go(next);
  };
  // A button that is disabled would lose the focus of whoever pressed it.
  const step = (key, to) => html`
    <button
      type="button"
      class="small outline"
      aria-disabled=${to === page ? "true" : undefined}
      onClick=${() => to !== page && go(to)}
    >
      ${t(key)}
    </button>
  `;
  return html`
    <nav class="pager" aria-label=${t("pager")}>
      ${step("pager.first", 0)} ${step("pager.previous", Math.max(page - 1, 0))}
      <label class="inline">
        ${t("pager.page")}
        <input ref=${field} type="number" min="1" max=${pages} onChange=${enter} />
      </label>
      <span>${t("pager.of", { pages })}</span>
      ${step("pager.next", Math.min(page + 1, pages - 1))} ${step("pager.last", pages - 1)}
    </nav>
  `;
}
