// Settings: those of the workspace, its store, and the state of what the service needs.
import { call } from "../api.js";
import { Failure, Waiting } from "../parts/basics.js";
import { Components } from "../parts/components.js";
import { useLoaded } from "../parts/loaded.js";
import { SettingsForm } from "../parts/settings_form.js";
import { StorePart } from "../parts/store_part.js";
import { mayWrite, notify } from "../state.js";
import { t } from "../texts.js";
import { html, useRef, useState } from "../vendor/ui.js";

export function SettingsPanel() {
  const { value, failure, reload, replace } = useLoaded((signal) => call("GET", "v1/settings", { signal }));
  const [refused, setRefused] = useState(null);
  const told = useRef(null);
  const save = async (changes) => {
    setRefused(null);
    // What the last save told does not hold for this one.
    told.current?.close();
    try {
      replace(await call("PATCH", "v1/settings", { body: changes }));
      told.current = notify(t("settings.saved"));
      return true;
    } catch (error) {
      setRefused(error);
      return false;
    }
  };
  return html`
    <h1>${t("nav.settings")}</h1>
    ${failure && html`<${Failure} error=${failure} retry=${reload} />`}
    ${!value && !failure && html`<${Waiting} text=${t("settings.loading")} />`}
    ${value &&
    html`
      ${!mayWrite.value && html`<p class="notice">${t("settings.read_only")}</p>`}
      <${SettingsForm} settings=${value} save=${save} refused=${refused} locked=${!mayWrite.value} />
      <${StorePart} settings=${value} reload=${reload} />
    `}
    <${Components} />
  `;
}
