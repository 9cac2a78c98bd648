// Finds entities while one types their names.
import { call, isAbort } from "../api.js";
import { t } from "../texts.js";
import { html, useEffect, useId, useState } from "../vendor/ui.js";

const PAUSE_MS = 150;

export function EntityFinder({ type, onEntity }) {
  const [text, setText] = useState("");
  const [found, setFound] = useState(null);
  const [active, setActive] = useState(-1);
  const list = useId();
  useEffect(() => {
    if (!text.trim()) return setFound(null);
    const leaving = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const { entities } = await call("GET", "v1/graph/search", { query: { text, type, limit: 12 }, signal: leaving.signal });
        setFound(entities);
        setActive(-1);
      } catch (error) {
        if (!isAbort(error)) setFound([]);
      }
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      leaving.abort();
    };
  }, [text, type]);
  const choose = (name) => {
    setText("");
    setFound(null);
    onEntity(name);
  };
  const keys = (event) => {
    const count = found?.length ?? 0;
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in moves && count) {
      event.preventDefault();
      setActive((active + moves[event.key] + count) % count);
    } else if (event.key === "Enter" && count) {
      event.preventDefault();
      choose(found[Math.max(active, 0)].name);
    } else if (event.key === "Escape") setFound(null);
  };
  return html`
    <div class="finder">
      <label class="hidden" for=${`${list}-input`}>${t("graph.find")}</label>
      <input
        id=${`${list}-input`}
        type="search"
        role="combobox"
        autocomplete="off"
        placeholder=${t("graph.find")}
        value=${text}
        aria-expanded=${found?.length ? "true" : "false"}
        aria-controls=${list}
        aria-activedescendant=${active >= 0 ? `${list}-${active}` : undefined}
        onInput=${(event) => setText(event.target.value)}
        onKeyDown=${keys}
      />
      <ul id=${list} role="listbox" aria-label=${t("graph.found")} hidden=${!found?.length}>
        ${found?.map(
          ({ name, type: kind }, index) => html`
            <li id=${`${list}-${index}`} role="option" aria-selected=${index === active ? "true" : "false"} onClick=${() => choose(name)}>${name} <small>${kind}</small></li>
          `,
        )}
      </ul>
      <small role="status">${found && !found.length ? t("graph.not_found") : ""}</small>
    </div>
  `;
}
