// The frame of the console: navigation, workspace, token, messages. Each panel is a module of its own.
import { Ask } from "./panels/ask.js";
import { Documents } from "./panels/documents.js";
import { GraphPanel } from "./panels/graph.js";
import { Memory } from "./panels/memory.js";
import { SettingsPanel } from "./panels/settings.js";
import { refreshAccess } from "./parts/access.js";
import { Failure, Waiting } from "./parts/basics.js";
import { DocumentView } from "./parts/document_view.js";
import { DropZone } from "./parts/documents/drop_zone.js";
import { TokenDialog } from "./parts/token_dialog.js";
import { PANELS, access, chosenWorkspace, link, notices, opened, route, token, tokenWanted, workspace } from "./state.js";
import { LANGUAGES, choose, language, t } from "./texts.js";
import { effect, html, render, signal, useEffect, useRef, useState } from "./vendor/ui.js";

const VIEWS = { ask: Ask, documents: Documents, graph: GraphPanel, memory: Memory, settings: SettingsPanel };
const failure = signal(null);

// Asks anew whenever the token changes. Without a valid token, the dialog opens.
effect(() => {
  void token.value;
  load();
});

async function load() {
  const used = token.value;
  failure.value = null;
  try {
    await refreshAccess();
  } catch (error) {
    if (used !== token.value) return;
    access.value = null;
    if (error.status !== 401) failure.value = error;
  }
}

function App() {
  const { panel } = route.value;
  const main = useRef(null);
  const first = useRef(true);
  const [later, setLater] = useState(false);
  useEffect(() => {
    document.title = `${t(`nav.${panel}`)} – cragside`;
  }, [panel, language.value]);
  useEffect(() => {
    if (!first.current) main.current.focus();
    first.current = false;
  }, [panel]);
  useEffect(() => setLater(false), [tokenWanted.value]);
  const View = VIEWS[panel];
  return html`
    <a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), main.current.focus())}>${t("skip")}</a>
    <${Header} panel=${panel} />
    <main id="main" class="container" tabindex="-1" ref=${main} aria-label=${t(`nav.${panel}`)}>
      ${failure.value && html`<${Failure} error=${failure.value} retry=${load} />`}
      ${access.value
        ? html`<${View} key=${`${panel} ${workspace.value}`} />`
        : !failure.value && !tokenWanted.value && html`<${Waiting} text=${t("loading.service")} />`}
      ${tokenWanted.value &&
      html`<p>${t("token.needed")} <button class="small" onClick=${() => setLater(false)}>${t("token.ask")}</button></p>`}
    </main>
    <${Notices} />
    ${access.value && html`<${DropZone} />`}
    ${opened.value && html`<${DocumentView} key=${`${opened.value.id} ${opened.value.passage}`} />`}
    ${tokenWanted.value && !later && html`<${TokenDialog} close=${() => setLater(true)} />`}
  `;
}

function Header({ panel }) {
  const names = access.value?.workspaces ?? [];
  return html`
    <header class="container bar">
      <a class="brand" href=${link("ask")}>cragside</a>
      <nav aria-label=${t("nav")}>
        ${PANELS.map(
          (name) => html`
            <a href=${link(name)} aria-current=${name === panel ? "page" : undefined}>${t(`nav.${name}`)}</a>
          `,
        )}
      </nav>
      <div class="choices">
        <label>
          <span class="hidden">${t("workspace")}</span>
          <select
            value=${workspace.value}
            onChange=${(event) => (chosenWorkspace.value = event.target.value)}
            disabled=${!names.length}
          >
            ${names.map(({ name }) => html`<option value=${name} selected=${name === workspace.value}>${name}</option>`)}
          </select>
        </label>
        <label>
          <span class="hidden">${t("language")}</span>
          <select onChange=${(event) => choose(event.target.value)}>
            ${Object.entries(LANGUAGES).map(
              ([code, name]) => html`<option value=${code} lang=${code} selected=${code === language.value}>${name}</option>`,
            )}
          </select>
        </label>
        ${token.value && html`<button class="small outline" onClick=${() => (token.value = "")}>${t("token.forget")}</button>`}
      </div>
    </header>
  `;
}

function Notices() {
  useEffect(() => {
    addEventListener("keydown", undoByKey);
    return () => removeEventListener("keydown", undoByKey);
  }, []);
  return html`
    <div class="notices" role="status" aria-live="polite">
      ${notices.value.map(
        (notice) => html`
          <div class=${`notice ${notice.kind}`} key=${notice.id}>
            <span>${notice.text}</span>
            ${notice.action &&
            html`
              <button class="small" onClick=${notice.act} title=${notice.action.keys} aria-keyshortcuts=${notice.action.keys && "Control+Z"}>
                ${notice.action.label}
              </button>
            `}
            <button class="small outline" aria-label=${t("close")} onClick=${notice.close}>×</button>
          </div>
        `,
      )}
    </div>
  `;
}

// The keys of the newest message that can be undone. In a field they undo what was typed.
function undoByKey(event) {
  if (event.key !== "z" || !(event.ctrlKey || event.metaKey) || event.shiftKey) return;
  if (event.target.matches("input:not([type=checkbox]), textarea")) return;
  const newest = notices.value.findLast(({ action }) => action?.keys);
  if (newest) event.preventDefault(), newest.act();
}

// Else the browser would leave the page for a file that is dropped before the drop zone is there.
for (const name of ["dragover", "drop"]) {
  addEventListener(name, (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "none";
  });
}

const place = document.getElementById("app");
place.replaceChildren();
render(html`<${App} />`, place);
