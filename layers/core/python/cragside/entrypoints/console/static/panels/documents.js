import { t } from "../texts.js";
import { html } from "../vendor/ui.js";

export const Documents = () => html`<h1>${t("nav.documents")}</h1>`;
