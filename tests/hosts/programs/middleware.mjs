// The npm package's middleware for the AI SDK: node middleware.mjs MODEL_HOST CRAGSIDE. Prints JSON.
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

await tell({
  commanded: () => ask(wrapped(), QUESTION),
  always: () => ask(wrapped({ always: true }), QUESTION.replace("/rag ", "")),
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
});
