// Why nothing can be changed here: the store is read-only, or the token lacks the scope.
import { access, mayWrite } from "../state.js";
import { t } from "../texts.js";
import { html } from "../vendor/ui.js";

export function whyNoChange() {
  if (mayWrite.value) return "";
  return t(access.value?.read_only ? "write.read_only" : "write.no_scope");
}

export const NoChange = () => (mayWrite.value ? null : html`<p class="notice warning">${whyNoChange()}</p>`);
