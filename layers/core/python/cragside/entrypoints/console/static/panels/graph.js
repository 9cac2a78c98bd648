import { t } from "../texts.js";
import { html } from "../vendor/ui.js";

export const GraphPanel = () => html`<h1>${t("nav.graph")}</h1>`;
