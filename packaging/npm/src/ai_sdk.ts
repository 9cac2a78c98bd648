// A middleware of the AI SDK: prompts with the command get evidence from cragside, whichever model answers them.

import type { LanguageModelMiddleware } from "ai";
import { createClient } from "./client/client";
import { enrich } from "./client";
import { type RagContext, sourcesOf } from "./sources";

type Params = Parameters<NonNullable<LanguageModelMiddleware["transformParams"]>>[0]["params"];
type Message = Params["prompt"][number];
type Said = { role: string; content: string };
type Enriched = { messages: Said[]; metadata: { rag_context: RagContext } };

export interface Options {
  /** Where `cragside serve` is, such as http://127.0.0.1:8642. */
  address: string;
  /** Its token, if it asks for one. */
  token?: string;
  /** The knowledge base; the service's default without it. */
  workspace?: string;
  /** Every prompt of a user gets evidence, not only those with the command. */
  always?: boolean;
  /** The service's command; /rag by default. `always` needs none. */
  command?: string;
  /** How long the service may take; 35 seconds by default. */
  seconds?: number;
  /** What to do when the service does not answer. By default the prompt goes on without evidence. */
  onError?: (error: unknown) => void;
}

/** The middleware for `wrapLanguageModel`. What the answer cites becomes a source of the answer. */
export function cragside(options: Options): LanguageModelMiddleware {
  const { workspace, always = false, command = "/rag", seconds = 35, onError = () => {} } = options;
  // No other host gets the token and the question.
  const client = createClient({ baseUrl: options.address, auth: options.token, redirect: "error" });
  const contexts = new WeakMap<object, RagContext>();

  async function enriched(messages: Said[]): Promise<Enriched | undefined> {
    try {
      const signal = AbortSignal.timeout(seconds * 1000);
      const headers = always ? { "X-RAG": "always" as const } : undefined;
      const answer = await enrich({ client, signal, headers, throwOnError: true, body: { messages, workspace } as never });
      const found: unknown = answer.data;
      if (isEnriched(found, messages.length)) return found;
      throw new Error(`${options.address} did not answer with evidence. Is it a cragside with the command ${command}?`);
    } catch (error) {
      onError(error);
      return undefined;
    }
  }

  return {
    specificationVersion: "v4",
    transformParams: async ({ params }) => {
      const asked = params.prompt.at(-1);
      const text = asked?.role === "user" ? textOf(asked) : "";
      if (!text.trim() || !(always || begins(text, command))) return params;
      const messages = params.prompt.flatMap(said);
      messages[messages.length - 1].content = text;
      const found = await enriched(messages);
      if (!found) return params;
      const context = found.metadata.rag_context;
      const question = found.messages[found.messages.length - 1].content;
      const evidence = found.messages.length > messages.length ? `${found.messages.at(-2)?.content}\n\n` : "";
      const prompt = [...params.prompt.slice(0, -1), withText(asked as Message, evidence + question)];
      const transformed = { ...params, prompt };
      contexts.set(transformed, context);
      return transformed;
    },
    wrapGenerate: async ({ doGenerate, params }) => {
      const result = await doGenerate();
      const context = contexts.get(params);
      const text = result.content.map((part) => (part.type === "text" ? part.text : "")).join("");
      return context ? { ...result, content: [...result.content, ...sourcesOf(context, text)] } : result;
    },
    wrapStream: async ({ doStream, params }) => {
      const result = await doStream();
      const context = contexts.get(params);
      if (!context) return result;
      type Part = typeof result.stream extends ReadableStream<infer P> ? P : never;
      let text = "";
      const telling = new TransformStream<Part, Part>({
        transform(part, controller) {
          if (part.type === "text-delta") text += part.delta;
          if (part.type === "finish") for (const source of sourcesOf(context, text)) controller.enqueue(source);
          controller.enqueue(part);
        },
      });
      return { ...result, stream: result.stream.pipeThrough(telling) };
    },
  };
}

function isEnriched(answer: unknown, sent: number): answer is Enriched {
  const { messages, metadata } = (answer ?? {}) as { messages?: unknown; metadata?: { rag_context?: Partial<RagContext> } };
  const documents: unknown = metadata?.rag_context?.documents;
  const isText = (each: unknown) => typeof (each as Said | null)?.content === "string";
  const areMessages = Array.isArray(messages) && messages.length >= sent && messages.every(isText);
  return areMessages && Array.isArray(documents) && documents.every(isText);
}

function begins(text: string, command: string): boolean {
  const start = text.trimStart();
  return start.toLowerCase().startsWith(command.toLowerCase()) && !/\S/.test(start.charAt(command.length));
}

/** The last text of a message: what was typed stands behind what a program adds. */
function textOf(message: Message): string {
  const parts = typeof message.content === "string" ? [] : message.content;
  return parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).at(-1) ?? "";
}

function said(message: Message): Said[] {
  if (message.role === "tool") return [];
  const content = typeof message.content === "string" ? message.content : textOf(message);
  return [{ role: message.role, content }];
}

function withText(message: Message, text: string): Message {
  if (message.role !== "user") return message;
  const last = message.content.map((part) => part.type).lastIndexOf("text");
  const content = message.content.map((part, index) => (index === last ? { ...part, type: "text" as const, text } : part));
  return { ...message, content } as Message;
}
