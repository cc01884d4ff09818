"""The page: what happened in a test and what is to be said of it, as one HTML file that needs nothing beside it.

Law: every text that was not written here is escaped. Nothing is loaded and nothing runs.
"""

from __future__ import annotations

import json
import re
from html import escape
from typing import TYPE_CHECKING, Any, Final

from emulator.client.timeline import Timeline, of_request
from emulator.redaction import encodable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

_STYLE: Final = """
:root { color-scheme: light dark; --line: #d5d8dd; --soft: #5f6875; --bad: #b3261e; --good: #1a7f37; --who: #eef1f5; }
@media (prefers-color-scheme: dark) {
  :root { --line: #3a414b; --soft: #9aa4b1; --bad: #ff7b72; --good: #56d364; --who: #262c35; }
}
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.2rem; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin-top: 2rem; border-bottom: 1px solid var(--line); }
.failed { color: var(--bad); } .passed { color: var(--good); } .soft { color: var(--soft); }
table { border-collapse: collapse; width: 100%; }
td, th { vertical-align: top; text-align: left; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid var(--line); }
td.at { white-space: nowrap; text-align: right; color: var(--soft); font-variant-numeric: tabular-nums; }
td.who span { background: var(--who); border-radius: .3rem; padding: 0 .4rem; white-space: nowrap; }
pre, td.what, li { white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.5 ui-monospace, monospace; }
summary { cursor: pointer; font: 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
"""


def page(
    title: str, outcome: str, timeline: Timeline, requests: Sequence[Mapping[str, Any]], report: Mapping[str, Any]
) -> str:
    """The page of a test. `requests` are the journal's entries; `outcome` is `passed` or `failed`."""
    verdict = report["verdict"]
    start = f"Times in seconds from {timeline[0]['at']} ms on the emulator's clock." if timeline else ""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body>",
        f'<h1><span class="{_text(outcome)}">{_text(outcome)}</span> {_text(title)}</h1>',
        _lines("Not as it should be", verdict["failed"], "failed"),
        _lines("Left over", verdict["left"], "soft"),
        f'<h2>Timeline</h2><p class="soft">{start}</p>',
        _table(
            ("at", "who", "what"),
            (
                f'<td class="at">{seconds:+.3f}</td><td class="who"><span>{_text(who)}</span></td>'
                f'<td class="what">{_text(what)}</td>'
                for seconds, who, what in timeline.lines()
            ),
        ),
        "<h2>Required actions</h2>",
        _table(
            ("action", "outcome", "answered by", "request", "after"),
            (_answer(answer) for answer in report["answers"]),
        ),
        "<h2>Requests</h2>",
        *(_request(request) for request in requests),
        "<h2>Report</h2>",
        f"<details><summary>all of it</summary><pre>{_json(report)}</pre></details>",
        "</body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _answer(answer: Mapping[str, Any]) -> str:
    after = "" if answer["at"] is None else f"{(answer['at'] - answer['asked_at']) / 1000:.3f} s"
    cells = (
        f"{answer['type']} {answer['name']} [{answer['call_id']}]",
        answer["outcome"],
        answer["answered_by"] or "",
        answer["request_id"] or "",
        after,
    )
    return "".join(f'<td class="what">{_text(cell)}</td>' for cell in cells)


def _request(request: Mapping[str, Any]) -> str:
    return (
        f"<details><summary>{_text(of_request({**request, 'body': None}))}</summary>"
        f"<pre>{_json(request)}</pre></details>"
    )


def _lines(head: str, lines: Sequence[Mapping[str, str]], style: str) -> str:
    if not lines:
        return ""
    listed = "".join(f"<li>{_text(line['text'])}</li>" for line in lines)
    return f'<h2 class="{style}">{_text(head)}</h2><ul>{listed}</ul>'


def _table(heads: Iterable[str], rows: Iterable[str]) -> str:
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    if not body:
        return '<p class="soft">none</p>'
    return f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>\n{body}</table>"


def _json(value: Any) -> str:
    return _text(json.dumps(value, ensure_ascii=False, indent=2))


def _text(text: str) -> str:
    return escape(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", encodable(text)))
