"""Fingerprints, hashes of code, versions, commit."""

import subprocess

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crumb_nb.fingerprints import fingerprint, text_sha256
from crumb_nb.provenance import canonical_json, file_sha256, git_state, machine, package_versions, source_hash
from crumb_nb.records import DataError

rows = st.lists(st.tuples(st.text(min_size=1, max_size=5), st.text(max_size=9)), unique_by=lambda row: row[0], max_size=8)


def frame(pairs):
    return pd.DataFrame({"text": [t for _, t in pairs], "parent_id": None}, index=[d for d, _ in pairs], dtype=object)


@given(rows, st.randoms(use_true_random=False))
def test_fingerprint_ignores_order_only_where_it_says_so(pairs, random):
    mixed = pairs[:]
    random.shuffle(mixed)
    for order in ("free", "bytes"):
        assert fingerprint(frame(pairs), order) == fingerprint(frame(mixed), order)
    assert (fingerprint(frame(pairs), "given") == fingerprint(frame(mixed), "given")) == (pairs == mixed)


@given(rows.filter(bool))
def test_fingerprint_sees_every_change(pairs):
    (doc_id, text), *rest = pairs
    changed = [[(doc_id, text + "x"), *rest], [(doc_id + "x", text), *rest], rest]
    for order in ("free", "bytes", "given"):
        assert all(fingerprint(frame(pairs), order) != fingerprint(frame(other), order) for other in changed)


def test_fields_cannot_flow_into_each_other():
    "Without length marks ('ab', 'c') and ('a', 'bc') would be the same bytes."
    assert fingerprint(frame([("ab", "c")])) != fingerprint(frame([("a", "bc")]))
    with pytest.raises(ValueError, match="choose one of"):
        fingerprint(frame([]), "random")


def test_lone_surrogates_have_a_hash():
    assert text_sha256("\ud83d") != text_sha256("?")


def test_file_hash(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert file_sha256(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180 test vector
    with pytest.raises(DataError, match="cannot be read"):
        file_sha256(tmp_path / "none")


def test_source_hash_sees_code_not_comments(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    hashes = []
    for text in ['def f():\n    return 1\n', '# note\ndef f():\n    "doc"\n    return 1\n', 'def f():\n    return 2\n']:
        (tmp_path / "hashed_module.py").write_text(text)
        hashes.append(source_hash("hashed_module"))
    assert hashes[0] == hashes[1] != hashes[2]
    with pytest.raises(ValueError, match="no source"):
        source_hash("no_such_module_anywhere")


def test_canonical_json(tmp_path):
    value = {"b": np.arange(2), "a": np.float32(0.5), "p": tmp_path, "m": {"z": 1, "y": (1,)}}
    assert canonical_json(value) == '{"a":0.5,"b":[0,1],"m":{"y":[1],"z":1},"p":"%s"}' % tmp_path
    with pytest.raises(TypeError, match="set"):
        canonical_json({"s": {1}})
    with pytest.raises(ValueError):
        canonical_json(float("nan"))


def test_versions_have_no_local_suffix():
    assert package_versions(["torch", "nothing-of-this-name"])["nothing-of-this-name"] == "not installed"
    assert "+" not in package_versions(["torch"])["torch"]


def test_git_state(tmp_path):
    assert git_state(tmp_path / "none") == {"commit": None, "dirty": None}
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    (tmp_path / "f").write_text("1")
    for command in (["init", "-q"], ["add", "f"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True)
    clean = git_state(tmp_path)
    assert len(clean["commit"]) == 40 and clean["dirty"] is False
    (tmp_path / "f").write_text("2")
    assert git_state(tmp_path)["dirty"] is True
    assert machine()["cores"] >= 1
