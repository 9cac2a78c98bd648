// Adds the files of a Git repository. The service clones it and tells each file.
import { ApiError, events } from "../../api.js";
import { t } from "../../texts.js";

export const looksLikeRepository = (url) => /\.git\/?$/i.test(url.trim());

export async function clone(item, change) {
  const body = { url: item.url, workspace: item.workspace, ...(item.branch && { branch: item.branch }) };
  for await (const { event, data } of events("POST", "v1/repositories", { body, signal: item.leaving.signal })) {
    if (event === "progress") change(item, { phase: "cloning", ...data });
    if (event === "done") return change(item, { phase: "done", accepted: data.accepted, refused: data.refused, errors: data.errors });
  }
  throw new ApiError(0, { error: { message: t("error.unreachable") } });
}
