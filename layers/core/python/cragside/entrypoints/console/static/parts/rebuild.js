// Builds stores anew. It goes on while one looks at other panels and workspaces, so its state is kept here.
import { ApiError, events, isAbort } from "../api.js";
import { notify } from "../state.js";
import { t } from "../texts.js";
import { signal } from "../vendor/ui.js";

// By workspace: {done, total} while its store is built anew, {failure} if that failed.
export const rebuilds = signal({});

export async function rebuild(workspace, total) {
  const now = (state) => (rebuilds.value = { ...rebuilds.value, [workspace]: state });
  now({ done: 0, total });
  try {
    notify(t("store.rebuilt", { n: await followed(workspace, now) }));
    now(undefined);
  } catch (failure) {
    now(isAbort(failure) ? undefined : { failure });
  }
}

// Answers the number of documents once all are built.
async function followed(workspace, now) {
  for await (const { event, data } of events("POST", "v1/reindex", { body: { workspace } })) {
    if (event === "progress") now({ done: data.done, total: data.total });
    if (event === "done") return data.documents;
  }
  throw new ApiError(0, { error: { message: t("error.unreachable") } });
}

// The service stops when the page is gone.
addEventListener("beforeunload", (event) => {
  if (Object.values(rebuilds.value).some((state) => state?.total !== undefined)) event.preventDefault();
});
