// Vercel's AI SDK, with the providers for Ollama and for hosts in OpenAI's form.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Output, generateText, jsonSchema, streamText, tool } from "ai";
import { createOllama } from "ollama-ai-provider-v2";
import { ADDRESS, CITY, ENDLESS, FUEL, QUESTION, pieces, some, tell } from "./telling.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const ollama = createOllama({ baseURL: `${ADDRESS}/api` });
const openai = createOpenAICompatible({ name: "cragside", baseURL: `${ADDRESS}/v1`, supportsStructuredOutputs: true });
const tools = { weather: tool({ description: "Tells the weather.", inputSchema: jsonSchema(CITY) }) };
const output = Output.object({ schema: jsonSchema(FUEL) });
const ask = (model, more = {}) => generateText({ model, prompt: QUESTION, maxRetries: 0, ...more });
const stream = (model) => pieces(streamText({ model, prompt: QUESTION, maxRetries: 0 }).textStream, (text) => text);

await tell({
  chat: async () => (await ask(openai("m"))).text,
  stream: () => stream(openai("m")),
  tools: async () => (await ask(openai("m"), { tools })).toolCalls[0].input,
  json: async () => (await ask(openai("m"), { output })).output,
  abort: async () => {
    const leaving = new AbortController();
    const { textStream } = streamText({ model: openai("m"), prompt: ENDLESS, abortSignal: leaving.signal });
    return some(textStream, (text) => text, () => leaving.abort());
  },
  error: () => ask(openai("missing")),
  ollama_chat: async () => (await ask(ollama("m"))).text,
  ollama_stream: () => stream(ollama("m")),
  ollama_tools: async () => (await ask(ollama("m"), { tools })).toolCalls[0].input,
});
