// An exchange: when it was, what was said, and a button to forget it.
import { mayWrite } from "../../state.js";
import { date, t } from "../../texts.js";
import { html, useState } from "../../vendor/ui.js";
import { focusSoon, neighbour } from "../focus.js";
import { remove } from "../undo.js";
import { load } from "./listing.js";

// An exchange may have hundreds of thousands of characters.
const SHOWN = 800;

export const pathOf = (id) => `v1/memories/${encodeURIComponent(id)}`;

export function Exchange({ id, at, text, note = "" }) {
  const [whole, setWhole] = useState(false);
  const when = date(at);
  // The text begins with the time, which is shown already.
  const said = text.replace(/^Date: [\d-]+ [\d:]+\n/, "");
  const cut = !whole && said.length > SHOWN;
  return html`
    <li class="exchange" id=${`exchange-${id}`}>
      <div class="where">
        <time datetime=${at}>${when}</time>
        ${note && html`<span class="badge">${note}</span>`}
        ${mayWrite.value &&
        html`<button class="small outline danger forget" aria-label=${t("memory.forget_one", { when })} onClick=${() => forget(id)}>${t("memory.forget")}</button>`}
      </div>
      <p class="text">${cut ? `${said.slice(0, SHOWN)}…` : said}</p>
      ${cut && html`<button class="small outline" onClick=${() => setWhole(true)}>${t("memory.whole")}</button>`}
    </li>
  `;
}

function forget(id) {
  const row = `exchange-${id}`;
  const next = neighbour([row], ".forget", "memory-title");
  const undone = () => focusSoon(() => document.getElementById(row)?.querySelector(".forget"));
  remove([pathOf(id)], { text: t("memory.forgotten"), done: load, undone });
  focusSoon(next);
}
