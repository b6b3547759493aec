"""Pickles of class probabilities: tables come through, anything else is refused before it runs."""

from __future__ import annotations

import builtins
import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.stats import entropy

from humanlike.data import published_unpickler
from humanlike.data.published_probabilities import convert_probabilities, model_name, read_pickled

LABELS = ("a", "b", "c")


def pickled_table(values=((0.2, 0.5, 0.3), (1.0, 0.0, 0.0)), ids=("s1", "s2")):
    rows = pd.Series([np.array(v) for v in values], dtype=object)
    table = pd.DataFrame({"sketch_id": pd.Series(list(ids), dtype=object), "proba_m_late": rows})
    table["top1_m_late"] = pd.Series([np.int64(1), np.int64(0)], dtype=object)
    table.columns = pd.Index(list(table.columns), dtype=object)
    return table


def written(path, value, protocol=4):
    path.write_bytes(value if isinstance(value, bytes) else pickle.dumps(value, protocol))
    return path


class Calls:
    """Pickles as a call."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def old_pickle(table):
    """The table as pandas before 1.3 wrote it: a block manager made without arguments and filled from a dictionary."""

    def part(value):
        return pickle.dumps(value, 2)[2:-1].replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")

    block = {"values": np.array(table.to_numpy(object).T), "mgr_locs": slice(0, table.shape[1], 1)}
    axes = [pd.Index(list(table.columns), dtype=object), pd.RangeIndex(len(table))]
    state = part((axes, [], [], {"0.14.1": {"axes": axes, "blocks": [block]}}))
    manager = b"cpandas.core.internals.managers\nBlockManager\n)\x81" + state + b"b"
    filled = b"}(" + part("_mgr") + manager + part("_typ") + part("dataframe") + b"u"
    return b"\x80\x02cpandas.core.frame\nDataFrame\n)\x81" + filled + b"b."


@pytest.mark.parametrize("protocol", [2, 5])
def test_tables_come_through(tmp_path, protocol):
    ids, p_NL = read_pickled(written(tmp_path / "m.pkl", pickled_table(), protocol))
    assert ids.tolist() == ["s1", "s2"]
    np.testing.assert_array_equal(p_NL, np.array([[0.2, 0.5, 0.3], [1, 0, 0]], np.float32))


def test_older_pandas_wrote_the_same_table_otherwise(tmp_path):
    raw = old_pickle(pickled_table())
    assert b"numpy.core.multiarray" in raw
    ids, p_NL = read_pickled(written(tmp_path / "m.pkl", raw))
    assert ids.tolist() == ["s1", "s2"]
    np.testing.assert_allclose(p_NL[0], [0.2, 0.5, 0.3], rtol=1e-6)


def attacks(marker):
    hidden = pickled_table()
    hidden["proba_m_late"] = pd.Series([Calls(os.system, f"touch {marker}"), 1], dtype=object)
    nested = Calls(pd.DataFrame, {"sketch_id": [Calls(builtins.eval, f"open({str(marker)!r}, 'w')")]})
    return {
        "posix.system": Calls(os.system, f"touch {marker}"),
        "builtins.eval": Calls(builtins.eval, f"open({str(marker)!r}, 'w')"),
        "builtins.exec": Calls(builtins.exec, "1"),
        "builtins.getattr": Calls(getattr, pd.DataFrame, "eval"),
        "builtins.open": Calls(open, str(marker), "w"),
        "pandas.core.computation.eval.eval": b"cpandas.core.computation.eval\neval\n(S'1'\ntR.",
        "pandas.io.common": b"cpandas\nio.common.os.system\n(S'true'\ntR.",
        "subprocess.Popen": Calls(subprocess.Popen, ["touch", str(marker)]),
        "hidden posix.system": hidden,
        "nested builtins.eval": nested,
        "codec": b"c_codecs\nencode\n(S'a'\nS'zip'\ntR.",
    }


@pytest.mark.parametrize("name", attacks("x"))
def test_attacks_are_refused_before_they_run(tmp_path, name):
    marker = tmp_path / "ran"
    file = written(tmp_path / "m.pkl", attacks(marker)[name])
    with pytest.raises(ValueError, match=r"m\.pkl: refused, the pickle is no plain table of class probabilities") as e:
        published_unpickled(file)
    assert "it calls" in str(e.value) or "codec" in str(e.value)
    assert not marker.exists()


def published_unpickled(file):
    """As `read_pickled` but in this process, for speed: no other limit than the list of names matters here."""
    try:
        with open(file, "rb") as handle:
            published_unpickler.plain(published_unpickler.TableUnpickler(handle).load())
    except pickle.UnpicklingError as error:
        raise ValueError(f"{file}: refused, the pickle is no plain table of class probabilities ({error})") from error


@pytest.mark.parametrize("name", ["posix.system", "builtins.eval", "nested builtins.eval"])
def test_the_process_refuses_them_too(tmp_path, name):
    marker = tmp_path / "ran"
    with pytest.raises(ValueError, match=r"refused, .*it calls (posix.system|builtins.eval), which rebuilds no table"):
        read_pickled(written(tmp_path / "m.pkl", attacks(marker)[name]))
    assert not marker.exists()


def test_the_hook_stops_what_a_name_would_let_through(tmp_path):
    code = (
        "import pickle, sys; sys.path.insert(0, sys.argv[1])\n"
        "import published_unpickler as p\n"
        "p.GLOBALS['io', 'open'] = open\n"
        "from pathlib import Path\n"
        "p.loaded(Path(sys.argv[2]))"
    )
    marker = tmp_path / "ran"
    file = written(tmp_path / "m.pkl", Calls(open, str(marker), "w"))
    folder = os.path.dirname(published_unpickler.__file__)
    done = subprocess.run([sys.executable, "-I", "-c", code, folder, str(file)], capture_output=True, text=True)
    assert "it reaches for open" in done.stderr
    assert not marker.exists()


def test_limits_and_other_contents(tmp_path):
    with pytest.raises(ValueError, match=r"it needs more memory than is allowed"):
        read_pickled(written(tmp_path / "m.pkl", np.zeros(4_000_000)), memory_bytes=100 << 20)
    with pytest.raises(ValueError, match="it holds a list, not a pandas table"):
        read_pickled(written(tmp_path / "m.pkl", [1, 2]))
    with pytest.raises(FileNotFoundError, match="expected a pickle of class probabilities"):
        read_pickled(tmp_path / "none.pkl")
    plain = published_unpickler.plain
    with pytest.raises(ValueError, match="expected the columns sketch_id, one proba_"):
        plain(pickled_table().drop(columns="sketch_id"))
    with pytest.raises(ValueError, match="row 2 holds no 3 probabilities"):
        plain(pickled_table(((0.2, 0.5, 0.3), (0.5, 0.5))))
    with pytest.raises(ValueError, match="row 2 holds no 3 probabilities"):
        plain(pickled_table(((0.2, 0.5, 0.3), (1.5, -0.5, 0))))


def test_plain_files_are_written_for_the_sketches_of_the_data_set(tmp_path):
    written(tmp_path / "things_df_human_metrics_neurips_m_late.pkl", pickled_table())
    (model,) = convert_probabilities(tmp_path, tmp_path / "out", ["s2", "x", "s1"], LABELS)
    assert (model.name, model.sketches, model.missing, model.others) == ("m", 2, 1, 0)
    table = pd.read_parquet(model.path)
    assert table["sketch_id"].tolist() == ["s2", "s1"]
    assert table["top1"].tolist() == ["a", "b"]
    np.testing.assert_allclose(table["probability"], [1, 0.5])
    np.testing.assert_allclose(table["entropy"], [0, entropy([0.2, 0.5, 0.3])], rtol=1e-6)
    p_NL = np.load(tmp_path / "out" / "m.npy", mmap_mode="r", allow_pickle=False)
    np.testing.assert_allclose(p_NL, [[1, 0, 0], [0.2, 0.5, 0.3]], rtol=1e-6)
    for values, labels, message in (
        (((0.2, 0.5, 0.3), (0.5, 0.0, 0.0)), LABELS, r"probabilities of 's2' \(row 2\) sum to 0.5"),
        (((0.2, 0.5, 0.3), (1.0, 0.0, 0.0)), ("a", "b"), "holds 3 probabilities, expected one a label"),
    ):
        written(tmp_path / "things_df_human_metrics_neurips_m_late.pkl", pickled_table(values))
        with pytest.raises(ValueError, match=message):
            convert_probabilities(tmp_path, tmp_path / "out", ["s1"], labels)
    written(tmp_path / "things_df_human_metrics_neurips_m_late.pkl", pickled_table(ids=("s1", "s1")))
    with pytest.raises(ValueError, match="'s1' occurs more than once"):
        convert_probabilities(tmp_path, tmp_path / "out", ["s1"], LABELS)
    with pytest.raises(FileNotFoundError, match=r"no \.pkl file"):
        convert_probabilities(tmp_path / "out", tmp_path / "out", ["s1"], LABELS)


def test_names_of_models(tmp_path):
    assert model_name(tmp_path / "things_df_human_metrics_neurips_harm-vit_1.0.pkl") == "harm-vit"
    assert model_name(tmp_path / "mine_1.pkl") == "mine_1"
