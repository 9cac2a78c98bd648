// The components that the service needs: their state, the cause if one fails, and what to do.
// On narrow screens the rows of the table are cards; its roles keep it a table for screen readers.
import { call } from "../api.js";
import { t } from "../texts.js";
import { html } from "../vendor/ui.js";
import { Failure, Waiting } from "./basics.js";
import { useLoaded } from "./loaded.js";

const COLUMNS = ["components.name", "components.state", "components.detail"];

export function Components() {
  const { value, failure, loading, reload } = useLoaded((signal) => call("GET", "v1/components", { shared: true, signal }));
  return html`
    <section>
      <h2>${t("components")}</h2>
      ${failure && (failure.status === 403 ? html`<p>${t("components.of_all")}</p>` : html`<${Failure} error=${failure} retry=${reload} />`)}
      ${value &&
      html`
        <div class="table" tabindex="0" role="region" aria-label=${t("components")}>
          <table class="components" role="table">
            <thead role="rowgroup">
              <tr role="row">${COLUMNS.map((key) => html`<th role="columnheader" scope="col">${t(key)}</th>`)}</tr>
            </thead>
            <tbody role="rowgroup">
              ${value.components.map(
                ({ name, state, version, detail, remedy }) => html`
                  <tr role="row">
                    <th role="rowheader" scope="row">${name}</th>
                    <td role="cell"><span class=${`badge ${state.replace(" ", "-")}`}>${t(`components.state.${state}`)}</span></td>
                    <td role="cell">${[version, detail].filter(Boolean).join(", ")}${remedy && html`<br /><strong>${remedy}</strong>`}</td>
                  </tr>
                `,
              )}
            </tbody>
          </table>
        </div>
        <button class="small outline" aria-busy=${loading ? "true" : undefined} onClick=${reload}>${t("components.again")}</button>
      `}
      ${loading && html`<${Waiting} text=${t("components.loading")} />`}
    </section>
  `;
}
