// A runner in Node without packages, to copy and to change; ../README.md explains the protocol.
const MAX = 64 * 1024 * 1024; // The longest line that we take, bytes.
const MENDABLE =
  ["unknown_tool", "invalid_params", "not_permitted", "deadline_exceeded", "frame_too_large", "overloaded"];
let link = null; // What `initialize` told.
let said = []; // The conversation.
let run = null; // What goes on: its request's id, what the model said last, and whether it is cancelled.
let [asked, cancelNext] = [0, false];
const waiting = new Map(); // Who waits for the answer to each request of ours.
console.log = console.info = console.debug = console.error; // What is printed is talk; stdout is for messages.

class Failed extends Error {
  constructor(code, kind, message, data = { kind }) {
    super(message);
    this.error = { code, message, data };
  }
}

const text = (words) => ({ type: "text", text: words });
const unanswered = [text("The run ended before an answer came, or the arguments are no valid JSON.")];
const toolResult = ({ call_id }, content = unanswered, is_error = true) =>
  ({ role: "tool", content: [{ type: "tool_result", call_id, content: content ?? [], is_error: is_error === true }] });

function send(message) {
  const line = JSON.stringify({ jsonrpc: "2.0", ...message });
  const fits = Buffer.byteLength(line) <= (link?.max_frame_bytes ?? MAX);
  if (!fits && message.method) throw new Failed(4010, "frame_too_large", "a request is longer than the host takes");
  if (fits) process.stdout.write(line + "\n");
  else send({ id: message.id, error: new Failed(4010, "frame_too_large", "the answer is too long").error });
}

function ask(method, params) {
  return new Promise((resolve, reject) => {
    if (run.cancelled) throw new Failed(4001, "cancelled", "the run is cancelled");
    asked += 1;
    send({ id: asked, method, params: { thread_id: link.thread_id, ...params } });
    waiting.set(asked, { resolve, reject });
  });
}

function mended({ error }) {
  if (!MENDABLE.includes(error?.data?.kind)) throw new Failed(error.code, null, error.message, error.data);
  return { content: [text(error.message)], is_error: true };
}

async function turns(tools) {
  for (;;) {
    const { message, inserted, finish_reason } = await ask("on_llm_request", { messages: said, ...tools });
    const content = (run.content = message.content ?? []);
    const wanted = Array.isArray(content) ? content.filter((part) => part.type === "tool_call") : [];
    const calls = wanted.map((call) => ({ call, result: toolResult(call) }));
    said = [...said, ...(inserted ?? []), message, ...calls.map(({ result }) => result)];
    if (!calls.length) {
      return { stop_reason: ["length", "refused"].includes(finish_reason) ? finish_reason : "finished", content };
    }
    let final = null;
    const todo = calls.filter(({ call }) => (call.arguments_text ?? null) === null);
    const work = async () => {
      for (let next; (next = todo.shift()); ) {
        const { call_id, tool_name, arguments: given } = next.call;
        const got = await ask("on_tool_call", { call_id, tool_name, arguments: given ?? {} }).catch(mended);
        said.splice(said.indexOf(next.result), 1); // Results stand in the order of the answers.
        said.push(toolResult(next.call, got.content ?? [], got.is_error));
        if (got.end_run) final = { structured: got.structured_content ?? given };
      }
    };
    await Promise.all(Array.from({ length: 64 }, work)); // So many calls beside each other.
    if (final) return { stop_reason: "final_answer", content, ...final };
  }
}

async function begin(id, { assistant, query, context, inputs, tools, history }) {
  const files = (inputs ?? []).flatMap(({ path, content, picture }) => [text(`${path}:\n${content}`), picture]);
  const task = [context && text(context), ...files, query && text(query)].filter(Boolean);
  said = [{ role: "system", content: assistant.system_prompt }, ...(history ?? said.slice(1))];
  if (task.length) said.push({ role: "user", content: task });
  run = { id, content: [], cancelled: cancelNext };
  cancelNext = false;
  let answer;
  try {
    answer = { result: await turns(tools?.length ? { tools } : {}) };
  } catch (failed) {
    answer = { error: failed.error ?? new Failed(-32603, "internal_error", String(failed)).error };
  }
  if (run.cancelled) answer = { result: { stop_reason: "cancelled", content: run.content } };
  for (const given of waiting.keys()) send({ id: `cancel-${given}`, method: "cancel_call", params: { id: given } });
  waiting.clear();
  run = null;
  send({ id, ...answer });
}

function serve(id, method, params) {
  const are = (test, ...all) => all.every((it) => it == null || test(it)); // Null is absent.
  const fits = method !== "run" || (typeof params.assistant?.system_prompt === "string" &&
    are((it) => typeof it === "string", params.query, params.context) &&
    are(Array.isArray, params.inputs, params.tools, params.history));
  if (!fits || typeof params !== "object") throw new Failed(-32602, "invalid_params", `they do not fit \`${method}\``);
  if (method === "initialize") {
    if (link) throw new Failed(-32600, "invalid_request", "`initialize` was answered before");
    if (params.protocol_version !== 1) throw new Failed(4011, "unsupported_protocol", "this runner speaks version 1");
    link = params;
    send({ id, result: { protocol_version: 1, runner: { name: "runner.mjs", version: "1" }, max_frame_bytes: MAX } });
  } else if (method === "run") {
    if (run || !link) throw new Failed(-32600, "invalid_request", link ? "a run goes on" : "`initialize` comes first");
    begin(id, params).catch((failed) => send({ id, error: new Failed(-32602, "invalid_params", String(failed)).error }));
  } else if (["ping", "cancel", "cancel_call", "shutdown"].includes(method)) {
    send({ id, result: {} });
    if (method === "cancel") cancelNext = !run;
    if (!run || method === "ping" || (method === "cancel_call" && params.id !== run.id)) return;
    run.cancelled = true;
    for (const { reject } of waiting.values()) reject(new Failed(4001, "cancelled", "the run is cancelled"));
  } else {
    throw new Failed(-32601, "method_not_found", `\`${method}\` is not answered here`);
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
// Numbers that a double cannot hold go back as they came, where this Node tells how they were written.
const exact = JSON.rawJSON && ((_, value, { source } = {}) =>
  typeof value === "number" && String(value) !== source ? JSON.rawJSON(source) : value);

function take(line) {
  let message;
  try {
    message = JSON.parse(utf8.decode(line), exact);
  } catch {
    return; // It is no message.
  }
  const { id, method, params, result, error } = message ?? {};
  if (typeof method === "string" && ["number", "string"].includes(typeof id)) {
    try {
      serve(id, method, params ?? {});
    } catch (failed) {
      send({ id, error: failed.error ?? new Failed(-32602, "invalid_params", String(failed)).error });
    }
  } else if (waiting.has(id)) {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    error ? reject(new Failed(error.code, null, error.message, error.data)) : resolve(result);
  }
}

// Lines end at the byte 10: a reader of text would end them at U+2028 too.
let rest = [];
process.stdin.on("data", (chunk) => {
  for (let at; (at = chunk.indexOf(10)) >= 0; chunk = chunk.subarray(at + 1)) {
    take(Buffer.concat([...rest, chunk.subarray(0, at)]));
    rest = [];
  }
  rest.push(chunk);
});
process.stdin.on("end", () => {
  process.stdout.write("", () => process.exit(0)); // When all is written; where nobody reads, all the same.
  setTimeout(() => process.exit(0), 1000);
});
process.stdout.on("error", () => process.exit(1));
