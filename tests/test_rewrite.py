"""Rewriting: released files, an endpoint that misbehaves, resuming, secrets, and gates."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest

from crumb_nb.records import DataError, queries_frame
from crumb_nb.retrievers import rewrite
from crumb_nb.retrievers.rewrite import (
    PROMPTS,
    Endpoint,
    EndpointError,
    Gate,
    content_of,
    find_rewrites,
    gate,
    generate_rewrites,
    policies,
    read_rewrites,
    rewritten,
    write_rewrites,
)

QUERIES = queries_frame(["q1", "q2", "q3"], ["owls at night", "bread", "{query} {braces}"], ["Find birds.", "", ""])
SECRET = "sk-a-secret-that-must-not-be-written"


class Server:
    "A chat-completions server on this machine that follows a script: each item is a status, a body, or a function of the handler."

    def __init__(self):
        self.script, self.seen, self.times = [], [], []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.seen.append({"path": self.path, "body": body, "authorization": self.headers.get("Authorization")})
                outer.times.append(time.monotonic())
                step = outer.script.pop(0) if outer.script else 200
                if callable(step):
                    return step(self)
                status, headers, raw = step if isinstance(step, tuple) else (step, {}, None)
                if raw is None:
                    raw = answer("Thinking.\nRewritten:\n" + body["messages"][0]["content"].splitlines()[-1].upper())
                self.reply(status, headers, raw)

            def reply(self, status, headers, raw):
                self.send_response(status)
                for name, value in {"Content-Length": str(len(raw)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    self.wfile.write(raw)
                except OSError:
                    pass

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"


def answer(text):
    return json.dumps({"choices": [{"message": {"content": text}}]}).encode()


@pytest.fixture()
def server(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    made = Server()
    yield made
    made.http.shutdown()
    made.http.server_close()


def endpoint_of(server, **more):
    return Endpoint(server.url, **{"model": "stub", "first_wait": 0.01, "timeout": 5.0, **more})


# ---- files


def row(query_id="q1", content="new"):
    return {"content": content, "id": query_id, "metadata": {"full_generation": "x", "prompt": "p"}, "original_item": {"id": query_id, "content": "old"}}


def test_released_files_round_trip(tmp_path):
    for name in ("query_as_reasoning_steps", "query_to_answer_cot", "query_to_doc_cot"):
        write_rewrites(tmp_path / f"queries_gemma_3_27b_{name}.jsonl", [row(content=name), row("q 2#", "é 東")])
    for asked, name in (("query_to_doc", "query_to_doc_cot"), ("query_to_answer_cot", "query_to_answer_cot"), ("reasoning", "query_as_reasoning_steps")):
        assert read_rewrites(find_rewrites(tmp_path, asked)) == {"q1": name, "q 2#": "é 東"}
    for asked in ("query_to", "song"):
        with pytest.raises(DataError, match="query_to_doc_cot"):
            find_rewrites(tmp_path, asked)


@pytest.mark.parametrize("rows, what", [([row(), row()], "twice"), ([row(content=" ")], "empty"), ([{"id": "q"}], "content"), ([{"content": 3, "id": "q"}], "str expected")])
def test_a_wrong_line_is_named(tmp_path, rows, what):
    path = tmp_path / "queries_x.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    with pytest.raises(DataError, match=what) as caught:
        read_rewrites(path)
    assert f"queries_x.jsonl:{len(rows)}" in str(caught.value)
    with pytest.raises(DataError, match="metadata"):
        write_rewrites(tmp_path / "y.jsonl", [{"content": "a", "id": "b"}])


def test_rewritten_queries():
    frame = rewritten(QUERIES, {"q1": "birds", "unknown": "x"})
    assert frame["text"].tolist() == ["birds", "bread", "{query} {braces}"] and frame["rewritten"].tolist() == [True, False, False]
    assert rewritten(QUERIES, {"q1": "birds"}, "append")["text"].iloc[0] == "owls at night\nbirds"
    assert frame["instruction"].equals(QUERIES["instruction"]) and list(frame.index) == list(QUERIES.index)
    with pytest.raises(ValueError, match="how"):
        rewritten(QUERIES, {}, "prepend")


# ---- the endpoint


def test_a_plain_answer_and_what_was_sent(server):
    assert endpoint_of(server).complete("owls") == "Thinking.\nRewritten:\nOWLS"
    sent = server.seen[0]
    assert sent["path"] == "/v1/chat/completions" and sent["authorization"] is None
    assert sent["body"] == {"model": "stub", "messages": [{"role": "user", "content": "owls"}], "temperature": 0.0, "max_tokens": 512, "seed": 0}


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_a_busy_server_is_asked_again(server, status):
    server.script = [status, status]
    assert endpoint_of(server).complete("owls") and len(server.seen) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_refusal_is_final(server, status):
    server.script = [status]
    with pytest.raises(EndpointError, match=f"HTTP {status}"):
        endpoint_of(server).complete("owls")
    assert len(server.seen) == 1


@pytest.mark.parametrize("raw", [b"no json", b"[]", b'{"choices": []}', answer(""), json.dumps({"choices": [{"message": {"content": None}}]}).encode()])
def test_an_answer_that_is_none_is_asked_for_again(server, raw):
    server.script = [(200, {}, raw)]
    assert endpoint_of(server).complete("owls") and len(server.seen) == 2


def test_a_silent_server_times_out_and_is_asked_again(server):
    server.script = [lambda handler: (time.sleep(0.6), handler.reply(200, {}, answer("late")))]
    assert endpoint_of(server, timeout=0.2).complete("owls") == "Thinking.\nRewritten:\nOWLS"


def test_a_broken_connection_is_asked_again(server):
    def short(handler):
        handler.reply(200, {"Content-Length": "999"}, b"{")
        handler.close_connection = True

    server.script = [short, lambda handler: handler.connection.close()]
    assert endpoint_of(server).complete("owls") and len(server.seen) == 3


def test_all_attempts_used_up(server):
    server.script = [503] * 9
    with pytest.raises(EndpointError, match=r"HTTP 503 \(3 attempts\)"):
        endpoint_of(server, retries=2).complete("owls")
    assert len(server.seen) == 3


def test_nobody_there():
    with pytest.raises(EndpointError, match="2 attempts"):
        Endpoint("http://127.0.0.1:9/v1", "stub", retries=1, first_wait=0.0, timeout=2).complete("owls")
    with pytest.raises(ValueError, match="http"):
        Endpoint("localhost:8000", "stub")


def test_waits_double_and_retry_after_is_obeyed(server):
    waits = []
    server.script = [503, 503, (429, {"Retry-After": "7"}, b"{}"), (429, {"Retry-After": "soon"}, b"{}"), (429, {"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}, b"{}")]
    endpoint_of(server, first_wait=1.0).complete("owls", sleep=waits.append)
    assert waits == [1.0, 2.0, 7.0, 8.0, 0.0]
    assert rewrite._retry_after(None) is None


def test_a_redirect_is_not_followed(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    other = Server()
    server.script = [(302, {"Location": other.url}, b"")]
    with pytest.raises(EndpointError, match="HTTP 302"):
        endpoint_of(server).complete("owls")
    assert other.seen == []  # the key went nowhere else
    other.http.shutdown(), other.http.server_close()


def test_requests_are_spaced():
    clock = []
    pace = rewrite._Pace()
    for _ in range(4):
        pace.wait(600.0, clock.append)  # ten a second
    assert len(clock) == 3 and all(0.0 < w < 0.1 * n + 0.01 for n, w in enumerate(clock, 1))
    pace.wait(None, clock.append)
    assert len(clock) == 3


# ---- generation


def test_generation_in_the_released_format(server, tmp_path):
    rows = generate_rewrites(QUERIES, endpoint_of(server), "query_to_doc", tmp_path / "cache", workers=2)
    assert [r["id"] for r in rows] == ["q1", "q2", "q3"]
    assert rows[0]["content"] == "OWLS AT NIGHT" and rows[0]["original_item"] == {"id": "q1", "content": "owls at night"}
    assert rows[0]["metadata"] == {"full_generation": "Thinking.\nRewritten:\nOWLS AT NIGHT", "prompt": "query_to_doc", "model": "stub"}
    assert any("Find birds.\nowls at night" in s["body"]["messages"][0]["content"] for s in server.seen)
    assert any(s["body"]["messages"][0]["content"].endswith("{query} {braces}") for s in server.seen)  # braces of a query are its own
    write_rewrites(tmp_path / "queries_stub_query_to_doc.jsonl", rows)
    assert read_rewrites(find_rewrites(tmp_path, "query_to_doc"))["q2"] == "BREAD"


def test_a_kept_answer_is_not_asked_for_again(server, tmp_path):
    ask = lambda **more: generate_rewrites(QUERIES, endpoint_of(server, **more), "query_to_answer", tmp_path)
    first = ask()
    assert ask() == first and len(server.seen) == 3
    assert len(ask(temperature=0.5)) == 3 and len(server.seen) == 6  # another request
    victim = sorted(tmp_path.glob("*.json"))[0]
    victim.write_text("{broken")
    ask(), ask(temperature=0.5)
    assert len(server.seen) == 7


def test_a_stopped_run_goes_on_where_it_was(server, tmp_path):
    server.script = [200, 401]
    with pytest.raises(EndpointError):
        generate_rewrites(QUERIES, endpoint_of(server), "query_to_doc", tmp_path)
    asked = len(server.seen)
    rows = generate_rewrites(QUERIES, endpoint_of(server), "query_to_doc", tmp_path)
    assert len(rows) == 3 and len(server.seen) <= asked + 2  # the first answer was kept
    bodies = [s["body"]["messages"][0]["content"] for s in server.seen]
    assert sum("owls at night" in b for b in bodies) == 1


def test_the_key_comes_from_the_environment_and_is_written_nowhere(server, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    endpoint = endpoint_of(server, retries=0)
    rows = generate_rewrites(QUERIES, endpoint, "query_to_doc", tmp_path / "cache")
    assert server.seen[0]["authorization"] == f"Bearer {SECRET}"
    server.script = [401]
    with pytest.raises(EndpointError) as caught:
        endpoint.complete("again")
    write_rewrites(tmp_path / "queries_x.jsonl", rows)
    written = "".join(p.read_text() for p in tmp_path.rglob("*") if p.is_file())
    assert SECRET not in written + repr(endpoint) + str(caught.value) + "".join(capfd.readouterr())


def test_prompts():
    assert all("{query}" in p and rewrite.MARK in p for p in PROMPTS.values())
    with pytest.raises(ValueError, match="query_to_doc"):
        generate_rewrites(QUERIES, Endpoint("http://127.0.0.1:9", "x"), "unknown prompt", "nowhere")
    assert content_of("a Rewritten: b Rewritten:\n c ") == "c" and content_of(" all ") == "all" and content_of("x Rewritten: ") == "x Rewritten:"


# ---- gates


def test_a_gate_needs_a_higher_mean_and_a_small_p():
    base = {f"q{n}": 0.1 * n for n in range(10)}
    up = {q: v + 0.05 for q, v in base.items()}
    passed = gate(up, base)
    assert passed.use and passed.p == 2 / 2**10 and passed.difference == pytest.approx(0.05) and passed.n == 10
    assert not gate(base, up).use and "not higher" in gate(base, up).reason
    assert not gate(base, base).use and gate(base, base).reason == "not used: no query differs" and gate(base, base).p == 1.0
    mixed = {q: v + (0.05 if n % 2 else -0.04) for n, (q, v) in enumerate(base.items())}
    assert not gate(mixed, base).use and "is above" in gate(mixed, base).reason
    assert gate(mixed, base, test="none").use
    assert gate(pd.Series(up), pd.Series(base)[::-1]).use  # queries are matched by id


def test_few_queries_cannot_pass():
    few = gate({f"q{n}": 1.0 for n in range(5)}, {f"q{n}": 0.0 for n in range(5)})
    assert not few.use and few.p == 2 / 2**5 and "5 differing queries no outcome reaches 0.05" in few.reason
    assert gate({}, {}).use is False


@pytest.mark.parametrize("test", ["t", "wilcoxon", "mcnemar"])
def test_other_tests(test):
    rng = np.random.default_rng(0)
    base = {f"q{n}": 0.0 for n in range(40)}
    up = {q: (1.0 if test == "mcnemar" else 0.5 + rng.random()) for q in base}
    assert gate(up, base, test=test).use
    with pytest.raises(ValueError, match="choose one of"):
        gate(up, base, test="coin")


def test_different_queries_are_no_pair():
    with pytest.raises(DataError, match="one side only"):
        gate({"a": 1.0}, {"b": 1.0})


def test_policies():
    yes, no = (Gate(use, "", 10, 0.0, 0.0, 1.0, 0.05) for use in (True, False))
    low, high = {"a": 0.2, "b": 0.4}, {"a": 0.5, "b": 0.7}
    table = policies({"helped": (high, low, yes), "hurt": (low, high, no)})
    value = table.pivot(index="task", columns="policy", values="value").round(9)
    assert value.loc["helped"].to_dict() == {"none": 0.3, "uniform": 0.6, "gated": 0.6, "oracle": 0.6}
    assert value.loc["hurt"].to_dict() == {"none": 0.6, "uniform": 0.3, "gated": 0.6, "oracle": 0.6}
    assert value.loc["mean"].to_dict() == {"none": 0.45, "uniform": 0.45, "gated": 0.6, "oracle": 0.6}
