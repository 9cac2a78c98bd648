// Finds entities while one types their names.
import { call, isAbort } from "../api.js";
import { t } from "../texts.js";
import { html, useEffect, useId, useState } from "../vendor/ui.js";
import { Failure } from "./basics.js";

const PAUSE_MS = 150;

export function EntityFinder({ type, onEntity }) {
  const [text, setText] = useState("");
  const [active, setActive] = useState(-1);
  const list = useId();
  const { entities, failure, retry, hide } = useFound(text, type);
  useEffect(() => setActive(-1), [entities]);
  useEffect(() => document.getElementById(`${list}-${active}`)?.scrollIntoView({ block: "nearest" }), [active]);
  const choose = (name) => {
    setText("");
    onEntity(name);
  };
  const keys = (event) => {
    const count = entities?.length ?? 0;
    if (event.key === "ArrowDown" && count) setActive((active + 1) % count);
    else if (event.key === "ArrowUp" && count) setActive(active > 0 ? active - 1 : count - 1);
    else if (event.key === "Enter" && count) choose((entities[active] ?? entities[0]).name);
    else {
      if (event.key === "Escape") hide();
      return;
    }
    event.preventDefault();
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
        aria-expanded=${entities?.length ? "true" : "false"}
        aria-controls=${list}
        aria-activedescendant=${entities?.[active] ? `${list}-${active}` : undefined}
        onInput=${(event) => setText(event.target.value)}
        onKeyDown=${keys}
      />
      <ul id=${list} role="listbox" aria-label=${t("graph.found")} hidden=${!entities?.length}>
        ${entities?.map(
          ({ name, type: kind }, index) => html`
            <li id=${`${list}-${index}`} role="option" aria-selected=${index === active ? "true" : "false"} onClick=${() => choose(name)}>${name} <small>${kind}</small></li>
          `,
        )}
      </ul>
      <small role="status">${entities && !entities.length ? t("graph.not_found") : ""}</small>
      ${failure && html`<${Failure} error=${failure} retry=${retry} />`}
    </div>
  `;
}

// The entities that have the text in their names. Those of an earlier text are never among them.
function useFound(text, type) {
  const [found, setFound] = useState({});
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (!text.trim()) return undefined;
    const leaving = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const { entities } = await call("GET", "v1/graph/search", { query: { text, type, limit: 12 }, signal: leaving.signal });
        setFound({ text, type, entities });
      } catch (failure) {
        if (!isAbort(failure)) setFound({ text, type, failure });
      }
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      leaving.abort();
    };
  }, [text, type, round]);
  const { entities = null, failure = null } = text.trim() && found.text === text && found.type === type ? found : {};
  const hide = () => setFound({});
  return { entities, failure, hide, retry: () => (hide(), setRound((last) => last + 1)) };
}
