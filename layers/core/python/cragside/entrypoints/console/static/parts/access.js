// Asks the service which workspaces the token opens, and what it may do in them.
import { call } from "../api.js";
import { access, tokenWanted } from "../state.js";

export async function refreshAccess() {
  access.value = await call("GET", "v1/workspaces", { shared: true });
  tokenWanted.value = false;
}
