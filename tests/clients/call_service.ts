// Calls a service through the generated module `client`: node call_service.js ADDRESS TOKEN. Prints JSON.

import { createClient } from "./client/client";
import {
  addDocuments,
  changeSettings,
  deleteDocument,
  enrich,
  getDocument,
  getSettings,
  healthz,
  listDocuments,
  queryPassages,
} from "./client";

declare const process: { argv: string[] };

const TEXT = "The keeper lights the lamp of the harbour at dusk.";
const QUESTION = "Who lights the lamp of the harbour?";

async function main(address: string, token: string): Promise<void> {
  const client = createClient({ baseUrl: address, auth: token });
  const must = { client, throwOnError: true } as const;
  const alive = await healthz(must);
  const added = await addDocuments({ ...must, body: { name: "lamp.md", text: TEXT } });
  const pump = { name: "pump.md", text: "A heat pump moves heat." };
  const again = await addDocuments({ ...must, body: pump, query: { workspace: "coast" } });
  const documentId = added.data.documents[0].id;
  const listed = async () => {
    const asked = ["default", "coast"].map((workspace) => listDocuments({ ...must, query: { workspace } }));
    return (await Promise.all(asked)).map((page) => page.data.documents);
  };
  let pages = await listed();
  for (let tries = 0; tries < 600 && pages.flat().some((each) => each.status !== "enriched"); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    pages = await listed();
  }
  const enriched = await enrich({ ...must, body: { prompt: `/rag ${QUESTION}` } });
  const metadata = enriched.data.metadata as { rag_context: { verdict: string; documents: { score: number }[] } };
  const ranked = await queryPassages({ ...must, body: { query: QUESTION } });
  const near = await queryPassages({ ...must, body: { query: QUESTION, by: "similarity" } });
  const refused = await queryPassages({ client, body: { query: QUESTION, limit: 0 } });
  const changed = await changeSettings({ ...must, body: { similarity_results: 4 } });
  const settings = await getSettings(must);
  const deleted = await deleteDocument({ ...must, path: { document_id: documentId } });
  const missing = await getDocument({ client, path: { document_id: documentId } });
  const stranger = createClient({ baseUrl: address, auth: "wrong" });
  const unauthorized = await queryPassages({ client: stranger, body: { query: QUESTION } });
  const best = ranked.data.results[0];
  console.log(
    JSON.stringify({
      alive: alive.data,
      names: pages.map((documents) => documents.map((each) => each.name)),
      outcomes: [...added.data.documents, ...again.data.documents].map((each) => each.outcome),
      verdict: metadata.rag_context.verdict,
      score: metadata.rag_context.documents[0].score,
      source: best.source,
      relevance: best.relevance,
      similarity: [best.similarity, near.data.results[0].similarity],
      ungraded: near.data.results[0].relevance,
      results: [changed.data.similarity_results, settings.data.similarity_results],
      deleted: deleted.response.status,
      errors: [refused, missing, unauthorized].map((each) => each.error?.error.type),
    }),
  );
}

main(process.argv[2], process.argv[3]);
