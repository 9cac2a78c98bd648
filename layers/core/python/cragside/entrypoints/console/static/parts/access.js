// Asks the service which workspaces the token opens, and what it may do in them.
import { call } from "../api.js";
import { access, token, tokenWanted } from "../state.js";

export async function refreshAccess() {
  const used = token.value;
  const found = await call("GET", "v1/workspaces", { shared: true });
  // Another token opens something else.
  if (used !== token.value) return;
  access.value = found;
  tokenWanted.value = false;
}
