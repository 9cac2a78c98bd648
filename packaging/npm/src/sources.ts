// The sources of an answer: the passages of the evidence that it cites.

export interface Passage {
  id: string;
  title: string;
  content: string;
  source: string;
  score: number | null;
  url?: string;
  metadata?: { filename?: string; documentId?: string };
}

export interface RagContext {
  verdict: string;
  documents: Passage[];
}

type Told = { providerMetadata: { cragside: { number: number; score: number | null; passage: string } } };
export type Source = { type: "source"; id: string; title: string } & Told &
  ({ sourceType: "url"; url: string } | { sourceType: "document"; mediaType: string; filename?: string });

/** The passages whose numbers stand in the text, `[1]` or `[1, 2]`, each once and in the order of their numbers. */
export function sourcesOf(context: RagContext, text: string): Source[] {
  const lists = [...text.matchAll(/\[\s?(\d{1,4}(?:\s?[,;]\s?\d{1,4}){0,50})\s?\]/g)];
  const cited = new Set(lists.flatMap((list) => list[1].split(/[,;]/).map(Number)));
  return context.documents.flatMap((passage, index) => (cited.has(index + 1) ? [sourceOf(passage, index + 1)] : []));
}

function sourceOf(passage: Passage, number: number): Source {
  const told = { cragside: { number, score: passage.score, passage: passage.id } };
  const title = passage.title || passage.metadata?.filename || `[${number}]`;
  const head = { type: "source" as const, id: `cragside-${number}`, title, providerMetadata: told };
  if (/^https?:\/\//.test(passage.url ?? "")) return { ...head, sourceType: "url", url: passage.url as string };
  return { ...head, sourceType: "document", mediaType: "text/plain", filename: passage.metadata?.filename };
}
