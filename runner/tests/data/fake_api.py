"""A stand-in for the APIs of models, for agents that are tried without any: standard library only.

It speaks what the agents speak: Anthropic's messages, OpenAI's responses and chat completions, Gemini's
streamGenerateContent. What it answers stands in the prompt, a line a model call:

    model: say Hello.             it says so
    model: call Bash {"command": "echo hi"}
    model: repeat                 it says what the last tool answered
    model: error 529 overloaded   an error of this status
    model: hang                   no answer at all
    model: long                   it says so much that it reaches its bound

Behind the last of them, and where there are none, it says "Done.". Its port is the first line of stdout. `GET /requests`
gives what was asked so far, as JSON. It ends with its stdin.
"""

import json
import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REQUESTS = []
LOCK = threading.Lock()
USAGE = {"input": 100, "cached": 40, "output": 7}


def flat(content):
    """The text of a content, whatever its shape."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(flat(part) for part in content)
    if isinstance(content, dict):
        for name in ("text", "content", "output", "response", "result"):
            if name in content:
                return flat(content[name])
        return json.dumps(content)
    return "" if content is None else str(content)


def turns(path, body):
    """What was said as (kind, text): kinds are user, model, tool."""
    told = []
    if "/messages" in path:
        for message in body.get("messages", []):
            content = message["content"]
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            if message["role"] == "assistant":
                told.append(("model", flat(content)))
                continue
            for part in parts:
                told.append(("tool" if part.get("type") == "tool_result" else "user", flat(part)))
    elif "/responses" in path:
        given = body.get("input", [])
        for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
            kind = item.get("type", "message")
            if kind.endswith("_call_output"):
                told.append(("tool", flat(item.get("output"))))
            elif kind.endswith("_call"):
                told.append(("model", json.dumps(item)))
            elif kind == "message":
                told.append(("model" if item["role"] == "assistant" else "user", flat(item["content"])))
    elif "/chat/completions" in path:
        kinds = {"assistant": "model", "tool": "tool"}
        for message in body.get("messages", []):
            told.append((kinds.get(message["role"], "user"), flat(message.get("content"))))
    else:
        for message in body.get("contents", []):
            for part in message.get("parts", []):
                if "functionResponse" in part:
                    told.append(("tool", flat(part["functionResponse"].get("response"))))
                elif "functionCall" in part:
                    told.append(("model", json.dumps(part)))
                else:
                    told.append(("model" if message.get("role") == "model" else "user", part.get("text", "")))
    return told


def next_step(told):
    """The line of the script that is due, and what the last tool answered."""
    script, done, last_tool = [], 0, ""
    after_model = False
    for kind, text in told:
        lines = re.findall(r"^model: *(.+)$", text, re.M) if kind == "user" else []
        if lines:
            script, done = lines, 0
        if kind == "tool":
            last_tool = text
        # Several parts of one answer count once: what follows them is the tools' or the user's.
        if kind == "model" and not after_model:
            done += 1
        after_model = kind == "model"
    return (script[done] if done < len(script) else "say Done."), last_tool


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.reply(200, b"")

    def do_GET(self):
        if self.path == "/requests":
            with LOCK:
                return self.reply(200, json.dumps(REQUESTS).encode())
        self.reply(200, b'{"data":[],"models":[]}')

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            return self.reply(400, b'{"error":{"message":"no JSON"}}')
        path = self.path.split("?")[0]
        if path.endswith("/count_tokens"):
            return self.reply(200, b'{"input_tokens":100}')
        if path.endswith(":countTokens"):
            return self.reply(200, b'{"totalTokens":100}')
        known = ("/messages", "/responses", "/chat/completions", ":streamGenerateContent", ":generateContent")
        if not path.endswith(known):
            return self.reply(200, b"{}")
        with LOCK:
            number = len(REQUESTS)
            REQUESTS.append({"path": self.path, "body": body})
        step, last_tool = next_step(turns(path, body))
        verb, _, rest = step.partition(" ")
        if verb == "hang":
            # The client goes, or this program ends.
            self.rfile.read(1)
            return
        if verb == "error":
            status, _, words = rest.partition(" ")
            kind = {"401": "authentication_error", "404": "not_found_error", "529": "overloaded_error"}
            error = {"type": kind.get(status, "api_error"), "message": words, "code": int(status), "status": "ERROR"}
            return self.reply(int(status), json.dumps({"type": "error", "error": error}).encode())
        say, call, stop = None, None, "stop"
        if (body.get("generationConfig") or {}).get("responseMimeType") == "application/json":
            # Which model is to be used, and the like.
            verb, rest = "say", '{"complexity_score": 1, "complexity_reasoning": "", "reasoning": "", "model_choice": "flash"}'
        if verb == "say":
            say = rest
        elif verb == "repeat":
            say = "It said: " + last_tool
        elif verb == "long":
            say, stop = "On and on", "length"
        elif verb == "call":
            name, _, arguments = rest.partition(" ")
            call = (f"call_{os.getpid()}_{number}", name, arguments or "{}")
        model = body.get("model", "some-model")
        if path.endswith("/messages"):
            self.messages(model, say, call, stop, body.get("stream"))
        elif path.endswith("/responses"):
            self.responses_(model, say, call, stop)
        elif path.endswith("/chat/completions"):
            self.completions(model, say, call, stop, body.get("stream"))
        else:
            self.gemini(say, call, stop, path.endswith(":streamGenerateContent"))

    def reply(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def events(self, events):
        """Server-sent events: (name or None, data)."""
        out = []
        for name, data in events:
            out.append(f"event: {name}\n" if name else "")
            out.append(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n")
        self.reply(200, "".join(out).encode(), "text/event-stream")

    def messages(self, model, say, call, stop, stream):
        usage = {"input_tokens": USAGE["input"] - USAGE["cached"], "cache_read_input_tokens": USAGE["cached"],
                 "cache_creation_input_tokens": 0, "output_tokens": USAGE["output"]}
        if call:
            block = {"type": "tool_use", "id": call[0].replace("call", "toolu"), "name": call[1], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": call[2]}
        else:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": say}
        reason = "tool_use" if call else {"stop": "end_turn", "length": "max_tokens"}[stop]
        whole = {"id": f"msg_{os.getpid()}_{len(REQUESTS)}", "type": "message", "role": "assistant", "model": model,
                 "content": [], "stop_reason": None, "stop_sequence": None, "usage": {**usage, "output_tokens": 1}}
        if not stream:
            done = {**block, "input": json.loads(call[2])} if call else {**block, "text": say}
            body = {**whole, "content": [done], "stop_reason": reason, "usage": usage}
            return self.reply(200, json.dumps(body).encode())
        self.events((event["type"], event) for event in [
            {"type": "message_start", "message": whole},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ])

    def responses_(self, model, say, call, stop):
        usage = {"input_tokens": USAGE["input"], "input_tokens_details": {"cached_tokens": USAGE["cached"]},
                 "output_tokens": USAGE["output"], "output_tokens_details": {"reasoning_tokens": 0},
                 "total_tokens": USAGE["input"] + USAGE["output"]}
        if call:
            space, _, name = call[1].rpartition("/")
            item = {"type": "function_call", "id": "fc_1", "call_id": call[0], "name": name, "arguments": call[2]}
            if space:
                item["namespace"] = space
        else:
            item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": say, "annotations": []}]}
        name = {"stop": "response.completed", "length": "response.incomplete"}[stop]
        response = {"id": f"resp_{len(REQUESTS)}", "object": "response", "model": model, "output": [item],
                    "status": name.split(".")[1], "usage": usage}
        if stop == "length":
            response["incomplete_details"] = {"reason": "max_output_tokens"}
        events = [{"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
                  {"type": "response.output_item.added", "output_index": 0, "item": item}]
        if say:
            events.append({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": say,
                           "item_id": "msg_1"})
        events += [{"type": "response.output_item.done", "output_index": 0, "item": item},
                   {"type": name, "response": response}]
        self.events((event["type"], event) for event in events)

    def completions(self, model, say, call, stop, stream):
        usage = {"prompt_tokens": USAGE["input"], "completion_tokens": USAGE["output"],
                 "total_tokens": USAGE["input"] + USAGE["output"],
                 "prompt_tokens_details": {"cached_tokens": USAGE["cached"]}}
        calls = call and [{"index": 0, "id": call[0], "type": "function",
                           "function": {"name": call[1], "arguments": call[2]}}]
        said = {"role": "assistant", "content": say, **({"tool_calls": calls} if calls else {})}
        reason = "tool_calls" if call else stop
        base = {"id": "chatcmpl-1", "created": 1, "model": model}
        if not stream:
            choice = {"index": 0, "message": said, "finish_reason": reason}
            return self.reply(200, json.dumps({**base, "object": "chat.completion", "choices": [choice],
                                               "usage": usage}).encode())
        chunk = {**base, "object": "chat.completion.chunk"}
        self.events([
            (None, {**chunk, "choices": [{"index": 0, "delta": said, "finish_reason": None}]}),
            (None, {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}),
            (None, "[DONE]"),
        ])

    def gemini(self, say, call, stop, stream):
        part = {"functionCall": {"name": call[1], "args": json.loads(call[2])}} if call else {"text": say}
        usage = {"promptTokenCount": USAGE["input"], "candidatesTokenCount": USAGE["output"],
                 "cachedContentTokenCount": USAGE["cached"], "totalTokenCount": USAGE["input"] + USAGE["output"]}
        reason = {"stop": "STOP", "length": "MAX_TOKENS"}[stop]
        body = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": reason, "index": 0}],
                "usageMetadata": usage, "modelVersion": "some-model"}
        if stream:
            self.events([(None, body)])
        else:
            self.reply(200, json.dumps(body).encode())


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.buffer.read()


main()
