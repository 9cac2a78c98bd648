// The npm package's middleware for the AI SDK: node middleware.mjs MODEL_HOST CRAGSIDE. Prints JSON.
import { createServer } from "node:http";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText, wrapLanguageModel } from "ai";
import { cragside } from "cragside/ai-sdk";
import { ADDRESS, QUESTION, pieces, tell } from "./telling.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const address = process.argv[3];
const host = createOpenAICompatible({ name: "host", baseURL: `${ADDRESS}/v1` });
const errors = [];
const wrapped = (more = {}) =>
  wrapLanguageModel({ model: host("m"), middleware: cragside({ address, ...more }) });
const ask = async (model, prompt) => {
  const { text, sources } = await generateText({ model, prompt, maxRetries: 0 });
  return [text, sources.map(({ sourceType, filename, providerMetadata }) => [sourceType, filename, providerMetadata.cragside.number])];
};

// What comes of a prompt when something else than a cragside of good will answers: the answer, its sources and the error.
const failing = async (answer, more = {}) => {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await new Promise((listening) => server.once("listening", listening));
  const told = [];
  const onError = (error) => told.push(String(error));
  const model = wrapped({ address: `http://127.0.0.1:${server.address().port}`, onError, ...more });
  const answered = await ask(model, `${QUESTION} plain`);
  server.closeAllConnections();
  server.close();
  return [...answered, told.length];
};
const sends = (value) => (_, response) =>
  response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(value));

await tell({
  commanded: () => ask(wrapped(), QUESTION),
  always: () => ask(wrapped({ always: true, command: "/other" }), QUESTION.replace("/rag ", "")),
  streamed: async () => {
    const { textStream, sources } = streamText({ model: wrapped(), prompt: QUESTION, maxRetries: 0 });
    return [(await pieces(textStream, (text) => text)).join(""), (await sources).map(({ filename }) => filename)];
  },
  plain: () => ask(wrapped(), "what does the lamp burn? plain"),
  ragtime: () => ask(wrapped(), "/ragtime plain"),
  unreachable: async () => {
    const model = wrapped({ address: "http://127.0.0.1:9", onError: (error) => errors.push(String(error)) });
    return [...(await ask(model, `${QUESTION} plain`)), errors.length];
  },
  redirected: () => failing((_, response) => response.writeHead(307, { Location: `${address}/v1/enrich` }).end()),
  silent: () => failing(() => {}, { seconds: 0.2 }),
  no_messages: () => failing(sends({ messages: [], metadata: { rag_context: { documents: [] } } })),
  no_passages: () => failing(sends({ messages: [{ content: "a" }], metadata: { rag_context: { documents: 1 } } })),
  nothing: () => failing(sends(null)),
  other_command: async () => {
    const told = [];
    const model = wrapped({ command: "/docs", onError: (error) => told.push(String(error)) });
    return [...(await ask(model, "/docs plain")), told[0]?.includes("Is it a cragside with the command /docs?")];
  },
});
