"""Arrays of arrays: what NumPy's own (unpickling) reader gives, and nothing is ever run."""

import io
import pickle
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.data.object_arrays import read_object_array


def saved(rows, protocol=None):
    """A .npy file of an array of arrays, by NumPy itself or with another pickle protocol."""
    array = np.empty(len(rows), dtype=object)
    array[:] = rows
    buffer = io.BytesIO()
    if protocol is None:
        np.save(buffer, array, allow_pickle=True)
    else:
        np.lib.format.write_array_header_1_0(buffer, {"descr": "|O", "fortran_order": False, "shape": array.shape})
        pickle.dump(array, buffer, protocol=protocol)
    return buffer.getvalue()


def same(found, rows):
    return len(found) == len(rows) and all(
        a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(found, rows, strict=True)
    )


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=6),
    st.sampled_from([np.int16, np.float32, np.float64, np.uint8, np.dtype(">i4")]),
    st.sampled_from([None, 1, 2, 3, 4]),
)
def test_what_numpy_wrote_is_read(lengths, dtype, protocol):
    rows = [np.arange(3 * n).reshape(n, 3).astype(dtype) for n in lengths]
    if len(set(lengths)) == 1:
        rows.append(np.zeros((9, 3), dtype))
    assert same(read_object_array(saved(rows, protocol), "x.npy"), rows)


def test_fortran_order_and_many_rows():
    rows = [np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)), np.ones((1, 3))]
    assert same(read_object_array(saved(rows), "x"), rows)
    many = [np.full((i % 4, 3), i, np.int16) for i in range(2500)]  # lists are pickled in pieces of 1,000
    assert same(read_object_array(saved(many), "x"), many)


def test_a_file_of_python_2_is_read():
    """Byte for byte what NumPy under Python 2 wrote for `array([array([[1, -2, 1]], int16)], object)`."""
    inner = struct.pack("<3h", 1, -2, 1)
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1L,), }"
    header += b" " * (69 - len(header)) + b"\n"
    data = (
        b"\x93NUMPY\x01\x00"
        + struct.pack("<H", len(header))
        + header
        + b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n"
        b"q\x01cnumpy\nndarray\nq\x02K\x00\x85U\x01b\x87Rq\x03(K\x01K\x01\x85cnumpy\ndtype\nq\x04U\x02O8K\x00K\x01\x87Rq\x05"
        b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tb\x89]q\x06h\x01h\x02K\x00\x85U\x01b\x87Rq\x07"
        b"(K\x01K\x01K\x03\x86h\x04U\x02i2K\x00K\x01\x87Rq\x08(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        b"\x89U\x06" + inner + b"tbatb."
    )
    assert same(read_object_array(data, "x"), [np.array([[1, -2, 1]], np.int16)])


class Evil:
    def __reduce__(self):
        return (exec, ("import pathlib, tempfile; raise SystemExit('ran')",))


class Loader:
    def __reduce__(self):
        return (np.load, ("/etc/hostname",))


@pytest.mark.parametrize("content", [Evil(), Loader(), [Evil()], {"a": 1}, "text", 7])
def test_anything_else_is_refused_and_not_run(content):
    with pytest.raises(ValueError, match=r"x\.npy: cannot read the arrays .*the file is damaged or unsafe"):
        read_object_array(saved([np.zeros((1, 3)), content]), "x.npy")


def test_the_refused_name_is_told():
    with pytest.raises(ValueError, match=r"refused, its pickle names (builtins|__builtin__)\.exec"):
        read_object_array(saved([np.zeros((1, 3)), Evil()]), "x.npy")


def test_damage_is_a_sentence():
    whole = saved([np.arange(6, dtype=np.int16).reshape(2, 3), np.zeros((1, 3), np.int16)])
    for end in range(0, len(whole), 7):
        with pytest.raises(ValueError, match=r"x\.npy"):
            read_object_array(whole[:end], "x.npy")
    plain = io.BytesIO()
    np.save(plain, np.zeros((4, 3)))
    with pytest.raises(ValueError, match=r"an array of float64 with shape .*expected an array of arrays"):
        read_object_array(plain.getvalue(), "x.npy")
    with pytest.raises(ValueError, match="plain numbers"):
        read_object_array(saved([np.array(["a"]), np.zeros((2, 3))]), "x.npy")


def test_random_bytes_never_do_anything_else_than_raise():
    whole = bytearray(saved([np.arange(6, dtype=np.int16).reshape(2, 3), np.zeros((1, 3), np.int16)]))
    rng = np.random.default_rng(0)
    for _ in range(300):
        broken = bytearray(whole)
        for position in rng.integers(128, len(whole), 3):
            broken[position] = rng.integers(256)
        try:
            rows = read_object_array(bytes(broken), "x.npy")
        except ValueError as error:
            if not str(error).startswith("x.npy: "):
                raise
        else:
            assert all(isinstance(row, np.ndarray) for row in rows)


def test_an_npz_member_reads_like_numpy(tmp_path):
    rows = [np.arange(3 * n).reshape(n, 3).astype(np.int16) for n in (1, 4, 2)]
    array = np.empty(3, dtype=object)
    array[:] = rows
    np.savez_compressed(tmp_path / "cat.npz", train=array)
    with zipfile.ZipFile(tmp_path / "cat.npz") as archive:
        assert same(read_object_array(archive.read("train.npy"), "cat"), rows)
