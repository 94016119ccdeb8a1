"""A runner of the standard library alone, to copy and to change; ../README.md explains the protocol."""
import json, os, sys
MAX = 64 * 1024 * 1024  # The longest line that we take, bytes.
CALL = ("call_id", "tool_name", "arguments")
METHODS = {"initialize", "run", "cancel", "cancel_call", "ping", "shutdown"}
MENDABLE = {"unknown_tool", "invalid_params", "not_permitted", "deadline_exceeded", "frame_too_large", "overloaded"}
pipe = open(os.dup(1), "wb")
os.dup2(2, 1)  # Whatever prints, here or in a child, prints to stderr from now on.

class Failed(Exception):
    def __init__(self, code, kind, message, data=None):
        self.error = {"code": code, "message": message, "data": data or {"kind": kind}}

def result(call, content="The run ended before an answer came, or the arguments are no JSON.", is_error=True):
    content = [{"type": "text", "text": content}] if isinstance(content, str) else content
    part = {"type": "tool_result", "call_id": call["call_id"], "content": content, "is_error": is_error}
    return {"role": "tool", "content": [part]}

class Runner:
    link, said, run_id, stop, asked = {}, [], None, False, 0  # `said` is the conversation.
    waiting = {}  # Our requests that are not answered: the tool call of each, or None where it asks the model.

    def send(self, **message):  # Half a surrogate pair is no UTF-8; it becomes an escape again.
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode(errors="backslashreplace")
        if len(line) > self.link.get("max_frame_bytes", MAX): raise Failed(4010, "frame_too_large", "too long a line")
        pipe.write(line + b"\n"), pipe.flush()

    def ask(self, method, call=None, **params):
        self.asked += 1
        self.send(id=self.asked, method=method, params={"thread_id": self.link["thread_id"], **params})
        self.waiting[self.asked] = call

    def hear(self, mendable=()):  # Serves the host until it answers us; a run that is cancelled leaves from here.
        for line in sys.stdin.buffer:
            try:
                message = json.loads(line)
                id, method, error = message["id"], message.get("method"), message.get("error")
            except (KeyError, RecursionError, TypeError, ValueError): continue  # It is no message.
            if method is not None and type(id) in (int, str): self.serve(id, method, message.get("params") or {})
            elif type(id) is int and id in self.waiting:
                call = self.waiting.pop(id)
                if error and (error.get("data") or {}).get("kind") not in mendable:
                    raise Failed(error["code"], None, error["message"], error.get("data"))
                return call, {"content": error["message"], "is_error": True} if error else message["result"]
        os._exit(0)

    def serve(self, id, method, params):
        try:
            if method not in METHODS: raise Failed(-32601, "method_not_found", f"`{method}` is not answered here")
            answer = getattr(self, method)(id, **params) if method in ("initialize", "run") else {}
            self.stop |= method in ("cancel", "shutdown") or method == "cancel_call" and params["id"] == self.run_id
            self.send(id=id, result=answer)
        except Failed as failed: self.send(id=id, error=failed.error)
        except (AttributeError, KeyError, TypeError) as bad:
            self.send(id=id, error=Failed(-32602, "invalid_params", f"`{method}` was not understood: {bad!r}").error)
        if self.stop and self.run_id is not None: raise InterruptedError

    def initialize(self, _, protocol_version, thread_id, max_frame_bytes, **__):
        if self.link: raise Failed(-32600, "invalid_request", "`initialize` was answered before")
        if protocol_version != 1: raise Failed(4011, "unsupported_protocol", "this runner speaks version 1")
        self.link = {"thread_id": thread_id, "max_frame_bytes": max_frame_bytes}
        return {"protocol_version": 1, "runner": {"name": "runner.py", "version": "1"}, "max_frame_bytes": MAX}

    def run(self, id, assistant, query=None, context=None, inputs=None, tools=None, history=None, **_):
        if not self.link or self.run_id is not None: raise Failed(-32600, "invalid_request", "no run can begin now")
        for it, kind in (query, str), (context, str), (inputs, list), (tools, list), (history, list):
            if it is not None and type(it) is not kind: raise TypeError(it)
        files = [part for file in inputs or [] for part in (f"{file['path']}:\n{file['content']}", file.get("picture"))]
        task = [{"type": "text", "text": one} if type(one) is str else one for one in [context, *files, query] if one]
        new = [dict(role="system", content=assistant["system_prompt"]), *(self.said[1:] if history is None else history)]
        self.said = new + ([{"role": "user", "content": task}] if task else [])
        self.run_id, self.content, offer = id, [], {"tools": tools} if tools else {}
        try:
            while not self.stop:
                self.ask("on_llm_request", messages=self.said, **offer)
                _, got = self.hear()
                content = self.content = got["message"]["content"] or []
                calls = [(it, result(it)) for it in content if it["type"] == "tool_call"] if type(content) is list else []
                self.said += [*(got.get("inserted") or []), got["message"], *(unanswered for _, unanswered in calls)]
                reason = got["finish_reason"] if got["finish_reason"] in ("length", "refused") else "finished"
                if not calls: return {"stop_reason": reason, "content": content}
                final, calls = {}, [pair for pair in calls if pair[0].get("arguments_text") is None]
                while calls or self.waiting:
                    while calls and len(self.waiting) < 64:
                        call, _ = pair = calls.pop(0)
                        self.ask("on_tool_call", pair, **{key: call[key] for key in CALL})
                    (call, unanswered), got = self.hear(MENDABLE)
                    self.said = [one for one in self.said if one is not unanswered]
                    self.said.append(result(call, got.get("content") or [], bool(got.get("is_error"))))
                    given = got.get("structured_content")
                    if got.get("end_run"): final = {"structured": call["arguments"] if given is None else given}
                if final: return {"stop_reason": "final_answer", "content": content, **final}
        except InterruptedError: pass
        finally:
            for number in self.waiting: self.send(id=f"cancel-{number}", method="cancel_call", params={"id": number})
            self.waiting, self.run_id, self.stop = {}, None, False
        return {"stop_reason": "cancelled", "content": self.content}

Runner().hear()
