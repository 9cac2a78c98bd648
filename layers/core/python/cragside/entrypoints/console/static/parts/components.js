// The components that the service needs: their state, the cause if one fails, and what to do.
import { call } from "../api.js";
import { t } from "../texts.js";
import { html } from "../vendor/ui.js";
import { Failure, Waiting } from "./basics.js";
import { useLoaded } from "./loaded.js";

export function Components() {
  const { value, failure, loading, reload } = useLoaded((signal) => call("GET", "v1/components", { shared: true, signal }));
  return html`
    <section>
      <h2>${t("components")}</h2>
      ${failure && (failure.status === 403 ? html`<p>${t("components.of_all")}</p>` : html`<${Failure} error=${failure} retry=${reload} />`)}
      ${value &&
      html`
        <div class="scroll" tabindex="0" role="region" aria-label=${t("components")}>
          <table>
            <thead><tr><th scope="col">${t("components.name")}</th><th scope="col">${t("components.state")}</th><th scope="col">${t("components.detail")}</th></tr></thead>
            <tbody>
              ${value.components.map(
                ({ name, state, version, detail, remedy }) => html`
                  <tr>
                    <th scope="row">${name}</th>
                    <td><span class=${`badge ${state.replace(" ", "-")}`}>${t(`components.state.${state}`)}</span></td>
                    <td>${[version, detail].filter(Boolean).join(", ")}${remedy && html`<br /><strong>${remedy}</strong>`}</td>
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
