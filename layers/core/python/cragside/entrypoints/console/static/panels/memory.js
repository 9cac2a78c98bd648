import { t } from "../texts.js";
import { html } from "../vendor/ui.js";

export const Memory = () => html`<h1>${t("nav.memory")}</h1>`;
