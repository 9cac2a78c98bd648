// What all panels share. Signals redraw whatever reads them.
import { computed, effect, signal } from "./vendor/ui.js";

export const PANELS = ["ask", "documents", "graph", "memory", "settings"];

// The token stays in this tab and ends with it.
export const token = signal(sessionStorage.getItem("token") ?? "");
export const tokenWanted = signal(false);
// Whether the service said that it does not know the token.
export const tokenRefused = signal(false);
// The workspaces that the token opens, as GET /v1/workspaces tells them; null until they are known.
export const access = signal(null);
export const chosenWorkspace = signal(sessionStorage.getItem("workspace"));
export const notices = signal([]);

const address = signal(location.hash);
addEventListener("hashchange", () => (address.value = location.hash));

// The panel and the parameters after it: #/graph?entity=Swan.
export const route = computed(() => {
  const [, path, query] = address.value.match(/^#?\/?([^?]*)\??(.*)$/s);
  return { panel: PANELS.includes(path) ? path : "ask", query: new URLSearchParams(query) };
});

export const workspace = computed(() => {
  const known = access.value?.workspaces.map((each) => each.name) ?? [];
  return known.includes(chosenWorkspace.value) ? chosenWorkspace.value : (access.value?.default ?? known[0] ?? "default");
});

export const mayWrite = computed(() => {
  const given = access.value;
  return Boolean(given && !given.read_only && given.scopes.includes("write"));
});

effect(() => sessionStorage.setItem("token", token.value));
effect(() => {
  if (chosenWorkspace.value) sessionStorage.setItem("workspace", chosenWorkspace.value);
});

export function link(panel, query = {}) {
  const parameters = new URLSearchParams(query).toString();
  return `#/${panel}${parameters ? `?${parameters}` : ""}`;
}

let told = 0;

// Shows a message for some seconds. `action` is {label, run, keys}; the message can be closed by `close`.
export function notify(text, { kind = "info", action = null, seconds = kind === "error" ? 30 : 8, gone = () => {} } = {}) {
  const notice = { id: (told += 1), text, kind, action };
  const close = () => {
    clearTimeout(timer);
    notices.value = notices.value.filter((each) => each.id !== notice.id);
  };
  const timer = setTimeout(() => {
    close();
    gone();
  }, seconds * 1000);
  notice.close = () => {
    close();
    gone();
  };
  notice.act = () => {
    close();
    action.run();
  };
  notices.value = [...notices.value, notice];
  return notice;
}

// The document that is shown above the panels: {id, passage, strip}, or null.
export const opened = signal(null);

export const openDocument = (id, passage, strip = null) => (opened.value = { id, passage, strip });
