"""What the test files of these tests have in them: a client of the API, the good and the bad ways to be one."""

from __future__ import annotations

from typing import Final

CLIENT: Final = """
import http.client, json, threading, urllib.error, urllib.request
import pytest

TOOLS = [{"type": "function", "name": "lookup", "description": "Look up.", "timeout_seconds": 60,
          "parameters": {"type": "object", "properties": {}}}]

def request(api, method, path, body=None, **headers):
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {api.token}", "content-type": "application/json", **headers}
    return urllib.request.Request(api.url + path, data, headers, method=method)

class ApiError(OSError):
    def __init__(self, status, body):
        super().__init__(f"the answer is {status}")
        self.status, self.body = status, body

def call(api, method, path, body=None):
    try:
        with urllib.request.urlopen(request(api, method, path, body), timeout=20) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            raise ApiError(error.code, json.load(error)) from None

def open_session(api, text="hello"):
    return call(api, "POST", "/v1/sessions", {"input": text, "agent": {"tools": TOOLS}})

def send(api, session_id, **event):
    return call(api, "POST", f"/v1/sessions/{session_id}/events", {"events": [event]})

def succeed(api, session, action, output="42"):
    return send(api, session["id"], type="input.tool_result", turn_id=action["turn_id"], call_id=action["call_id"],
                success=True, output=output)

def frames(stream):
    event = {}
    for line in stream:
        name, _, value = line.decode().rstrip("\\n").partition(": ")
        if name in ("id", "event", "data"):
            event[name] = value
        elif not name and event:
            yield event
            event = {}

def follow(api, session_id, step=0, last="turn.ended", patience=20):
    # Every event of a session up to the last, by its type. With a step it resumes past what it has not seen.
    seen, cursor = [], 0
    for attempt in range(4):
        try:
            path = f"/v1/sessions/{session_id}/events"
            sent = request(api, "GET", path, None, **{"last-event-id": str(cursor)})
            with urllib.request.urlopen(sent, timeout=patience) as stream:
                for event in frames(stream):
                    if "id" in event:
                        cursor = int(event["id"]) + step
                        seen.append(event["event"])
                    if event["event"] == last:
                        return seen
        except (OSError, http.client.HTTPException):
            pass
    return seen
"""
