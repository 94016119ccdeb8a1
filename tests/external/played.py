"""Models that are played: an HTTP server on 127.0.0.1 which speaks the wire formats of Anthropic's messages, OpenAI's
responses and chat completions, and Gemini. What it says next is a function of the tools that it is offered and of the
results that it has been given.
"""

import collections
import http.server
import json
import threading

BODIES_MAX = 100
USAGE = (1000, 20)
"""Tokens in and out that every answer tells."""


class Models:
    """The server. `says(tools, results, texts)` gives a text, or a pair of a tool's name and its arguments; `texts` is all
    that the user said, oldest first. What was asked is kept in `asked`."""

    def __init__(self, says):
        self.asked = []
        self.bodies = collections.deque(maxlen=BODIES_MAX)
        self.says = says
        handler = type("Handler", (Handler,), {"models": self})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, tools, results, texts):
        self.asked.append({"tools": tools, "results": results, "texts": texts})
        return self.says(tools, results, texts)


class Handler(http.server.BaseHTTPRequestHandler):
    """One request. Answers of models are streams of events; everything else that agents ask for is not there."""

    protocol_version = "HTTP/1.1"
    models = None

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.split("?")[0]
        played = next((play for end, play in PLAYED if end(path)), None)
        if played is None:
            return self.tell(404, {"error": {"type": "not_found_error", "message": f"nothing is at {path}"}})
        self.models.bodies.append(body.decode())
        events = list(played(json.loads(body), self.models.answer))
        if path.endswith(":generateContent"):
            return self.tell(200, events[-1][1])
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for name, data in events:
            head = f"event: {name}\n" if name else ""
            data = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write(f"{head}data: {data}\n\n".encode())
        self.close_connection = True
        return None

    def do_GET(self):
        self.tell(404, {"error": {"type": "not_found_error", "message": "nothing is here"}})

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def tell(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def text_of(content):
    if isinstance(content, str):
        return content
    return "".join(text_of(part.get("text") or part.get("content") or "") for part in content or [])


def anthropic(asked, answer):
    tools = [tool["name"] for tool in asked.get("tools", [])]
    parts = [(message["role"], part) for message in asked["messages"] for part in parts_of(message["content"])]
    results = [text_of(part.get("content", "")) for _, part in parts if part["type"] == "tool_result"]
    texts = [part["text"] for role, part in parts if role == "user" and part["type"] == "text"]
    said = answer(tools, results, texts)
    usage = {"input_tokens": USAGE[0], "output_tokens": USAGE[1]}
    head = {"id": f"msg_{len(results)}", "type": "message", "role": "assistant", "model": asked["model"], "content": []}
    yield "message_start", {"type": "message_start", "message": head | {"stop_reason": None, "usage": usage}}
    if isinstance(said, str):
        block, delta, stop = {"type": "text", "text": ""}, {"type": "text_delta", "text": said}, "end_turn"
    else:
        block = {"type": "tool_use", "id": f"toolu_{len(results)}", "name": said[0], "input": {}}
        delta, stop = {"type": "input_json_delta", "partial_json": json.dumps(said[1])}, "tool_use"
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    yield "message_delta", {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage}
    yield "message_stop", {"type": "message_stop"}


def parts_of(content):
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def responses(asked, answer):
    tools = [name for tool in asked.get("tools", []) for name in names_of(tool)]
    items = asked["input"]
    results = [text_of(item["output"]) for item in items if item.get("type", "").endswith("call_output")]
    texts = [text_of(item["content"]) for item in items if item.get("role") == "user"]
    said = answer([name for name, _ in tools], results, texts)
    if isinstance(said, str):
        content = [{"type": "output_text", "text": said, "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    else:
        group = dict(tools).get(said[0])
        item = {"type": "function_call", "id": "fc_1", "call_id": f"call_{len(results)}", "name": said[0]}
        item |= {"arguments": json.dumps(said[1])} | ({"namespace": group} if group else {})
    usage = {"input_tokens": USAGE[0], "output_tokens": USAGE[1], "total_tokens": sum(USAGE)}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    response = {"id": f"resp_{len(results)}", "object": "response", "status": "completed", "output": [item], "usage": usage}
    yield "response.created", {"type": "response.created", "response": response | {"status": "in_progress", "output": []}}
    yield "response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield "response.completed", {"type": "response.completed", "response": response}


def names_of(tool):
    """The names of a tool, or of those of a group, each with its group."""
    if "tools" in tool:
        return [(inner["name"], tool["name"]) for inner in tool["tools"]]
    return [(tool.get("name", tool["type"]), None)]


def completions(asked, answer):
    tools = [tool["function"]["name"] for tool in asked.get("tools", [])]
    of = lambda role: [text_of(message["content"]) for message in asked["messages"] if message["role"] == role]
    said = answer(tools, of("tool"), of("user"))
    if isinstance(said, str):
        delta, finish = {"content": said}, "stop"
    else:
        function = {"name": said[0], "arguments": json.dumps(said[1])}
        call = {"index": 0, "id": f"call_{len(of('tool'))}", "type": "function", "function": function}
        delta, finish = {"tool_calls": [call]}, "tool_calls"
    usage = {"prompt_tokens": USAGE[0], "completion_tokens": USAGE[1], "total_tokens": sum(USAGE)}
    for choice, more in [((delta | {"role": "assistant"}, None), {}), (({}, finish), {"usage": usage})]:
        choices = [{"index": 0, "delta": choice[0], "finish_reason": choice[1]}]
        yield None, {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "played", "choices": choices} | more
    yield None, "[DONE]"


def gemini(asked, answer):
    tools = [one["name"] for tool in asked.get("tools", []) for one in tool.get("functionDeclarations", [])]
    parts = [(content.get("role"), part) for content in asked["contents"] for part in content["parts"]]
    results = [json.dumps(part["functionResponse"]["response"]) for _, part in parts if "functionResponse" in part]
    texts = [part["text"] for role, part in parts if role == "user" and "text" in part]
    said = answer(tools, results, texts)
    part = {"text": said} if isinstance(said, str) else {"functionCall": {"name": said[0], "args": said[1]}}
    usage = {"promptTokenCount": USAGE[0], "candidatesTokenCount": USAGE[1], "totalTokenCount": sum(USAGE)}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    yield None, {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "played"}


PLAYED = [
    (lambda path: path.endswith("/messages"), anthropic),
    (lambda path: path.endswith("/responses"), responses),
    (lambda path: path.endswith("/chat/completions"), completions),
    (lambda path: path.endswith(("enerateContent")), gemini),
]
