// What somebody sees whose workspace is empty: what to do first, and documents to try it with.
import { call } from "../api.js";
import { link, mayWrite, notify, workspace } from "../state.js";
import { t } from "../texts.js";
import { html, useEffect, useState } from "../vendor/ui.js";
import { refreshAccess } from "./access.js";
import { Failure, Waiting } from "./basics.js";

export function Welcome({ ask }) {
  const [samples, setSamples] = useState(null);
  const [state, setState] = useState("offered");
  const [failure, setFailure] = useState(null);
  useEffect(() => {
    call("GET", "v1/samples", { shared: true }).then(setSamples, setFailure);
  }, []);
  const add = async () => {
    setState("adding");
    setFailure(null);
    try {
      const { documents } = await call("POST", "v1/samples", { body: {} });
      await searchable(documents.map(({ id }) => id));
      notify(t("welcome.added", { n: documents.length }));
      setState("added");
    } catch (error) {
      setFailure(error);
      setState("offered");
    }
  };
  return html`
    <section class="welcome">
      <h2>${t("welcome.title", { workspace: workspace.value })}</h2>
      <p>${t("welcome.first")} <a href=${link("documents")}>${t("welcome.documents")}</a></p>
      ${failure && html`<${Failure} error=${failure} />`}
      ${state === "adding" && html`<${Waiting} text=${t("welcome.adding")} />`}
      ${samples && state === "offered" && mayWrite.value && html`<button onClick=${add}>${t("welcome.try", { n: samples.documents })}</button>`}
      ${state === "added" &&
      html`
        <p>${t("welcome.ask")}</p>
        <ul>
          ${samples.questions.map(
            (each) => html`<li><button class="small outline" onClick=${() => (refreshAccess(), ask(each))}>${each}</button></li>`,
          )}
        </ul>
      `}
    </section>
  `;
}

// Waits until the texts can be found. A worker takes them one after the other.
async function searchable(ids) {
  for (;;) {
    const { total } = await call("GET", "v1/documents", { query: { status: "pending", limit: 1 } });
    if (!total || !ids.length) return;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}
