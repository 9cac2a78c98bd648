import { t } from "../texts.js";
import { html } from "../vendor/ui.js";

export const SettingsPanel = () => html`<h1>${t("nav.settings")}</h1>`;
