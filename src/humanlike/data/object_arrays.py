"""Arrays of arrays inside .npy and .npz files, read without unpickling.

NumPy stores an array of arrays (ragged drawings, as sketch-rnn's `.npz` files hold them) as a pickle, and unpickling a
file runs whatever its author wrote into it. Here the pickle is only parsed: its opcodes move inert values on a stack,
nothing is imported, and any name but those that NumPy's own arrays need is refused.
"""

from __future__ import annotations

import io
import pickletools
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): "reconstruct",
    ("numpy._core.multiarray", "_reconstruct"): "reconstruct",
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "dtype",
    ("_codecs", "encode"): "encode",
    ("__builtin__", "bytes"): "bytes",
}
_IGNORED = {"PROTO", "FRAME", "STOP"}
_PUSHED = {
    *("BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "BINFLOAT"),
    *("BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
}
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}


@dataclass(frozen=True)
class _Name:
    """One of the allowed names, as an inert word."""

    role: str


@dataclass
class _Type:
    """What a pickled dtype says."""

    text: str
    order: str = "|"

    def numpy(self) -> np.dtype:
        """The dtype, plain numbers only."""
        kind = self.text.lstrip("<>|=")
        if not kind or kind[0] not in "biuf" or not kind[1:].isdigit():
            raise ValueError(f"its values are of type {self.text!r}, not plain numbers")
        return np.dtype(kind if self.order == "|" else self.order + kind)


@dataclass
class _Array:
    """A pickled array: numbers, or a list of arrays."""

    state: tuple[Any, ...] = field(default_factory=tuple)

    def rows(self) -> list[np.ndarray]:
        """The arrays inside an array of arrays."""
        _, _, kind, _, content = self._checked()
        if kind.text.lstrip("|")[:1] != "O" or not isinstance(content, list):
            raise ValueError("it is not an array of arrays")
        return [row.numbers() if isinstance(row, _Array) else _not_an_array(row) for row in content]

    def numbers(self) -> np.ndarray:
        """The array of plain numbers."""
        _, shape, kind, fortran, content = self._checked()
        data = content.encode("latin-1") if isinstance(content, str) else content  # text: written by Python 2
        if not isinstance(data, bytes):
            raise ValueError("an inner array does not hold plain numbers")
        values = np.frombuffer(data, kind.numpy())
        return values.reshape(shape, order="F" if fortran else "C")

    def _checked(self) -> tuple[int, tuple[int, ...], _Type, bool, Any]:
        if len(self.state) != 5 or not isinstance(self.state[1], tuple) or not isinstance(self.state[2], _Type):
            raise ValueError("it does not hold NumPy arrays as NumPy writes them")
        return self.state


def read_object_array(data: bytes, where: str) -> list[np.ndarray]:
    """The arrays that a `.npy` file of an array of arrays holds.

    Args:
        data: The bytes of the file (of a member of an `.npz`).
        where: The file's name, for messages.

    Returns:
        One array of numbers for every entry, in order.

    Raises:
        ValueError: Naming the file: no `.npy` file, cut short, not an array of arrays, or a pickle that names anything
            but NumPy arrays.

    Example:
        >>> buffer = io.BytesIO()
        >>> np.save(buffer, np.array([np.zeros((2, 3), np.int16), np.ones((1, 3), np.int16)], dtype=object))
        >>> [a.shape for a in read_object_array(buffer.getvalue(), "cat.npy")]
        [(2, 3), (1, 3)]
    """
    stream = io.BytesIO(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # headers written by Python 2 are read, with a warning
            version = np.lib.format.read_magic(stream)
            reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = reader(stream)
    except (ValueError, EOFError, SyntaxError) as error:
        raise ValueError(f"{where}: not a .npy array ({error})") from error
    if not dtype.hasobject:
        raise ValueError(f"{where}: an array of {dtype} with shape {shape}, expected an array of arrays, one a drawing")
    try:
        rows = _parsed(stream.read()).rows()
    except (ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{where}: cannot read the arrays ({error}); the file is damaged or unsafe") from error
    if len(rows) != int(np.prod(shape)):
        raise ValueError(f"{where}: {len(rows)} arrays, the header says {shape}; the file is damaged")
    return rows


def _not_an_array(value: Any) -> np.ndarray:
    raise ValueError(f"an entry is {type(value).__name__}, not an array")


def _parsed(data: bytes) -> _Array:
    """The one array of a pickle."""
    machine = _Machine()
    for opcode, argument, _ in pickletools.genops(data):
        machine.step(opcode.name, argument)
    (found,) = machine.stack
    if not isinstance(found, _Array):
        raise ValueError("it holds no NumPy array")
    return found


class _Machine:
    """The stack of a pickle, holding inert values only."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []  # the stacks under the marks
        self.memo: dict[int, Any] = {}

    def step(self, name: str, argument: Any) -> None:
        """One opcode."""
        if name in _PUSHED:
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name not in _IGNORED:
            method = getattr(self, f"_{name.lower()}", None)
            if method is None:
                raise ValueError(f"it uses the pickle instruction {name}, which no NumPy array needs")
            method(argument)

    def _named(self, module: str, name: str) -> None:
        if (module, name) not in _ALLOWED:
            raise ValueError(f"refused, its pickle names {module}.{name}, which is no part of a NumPy array")
        self.stack.append(_Name(_ALLOWED[module, name]))

    def _global(self, argument: str) -> None:
        module, _, name = argument.partition(" ")
        self._named(module, name)

    def _stack_global(self, _: None) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        self._named(module, name)

    def _mark(self, _: None) -> None:
        self.below.append(self.stack)
        self.stack = []

    def _since_mark(self) -> list[Any]:
        taken, self.stack = self.stack, self.below.pop()
        return taken

    def _tuple(self, _: None) -> None:
        taken = tuple(self._since_mark())
        self.stack.append(taken)

    def _tuple1(self, _: None) -> None:
        self._last(1)

    def _tuple2(self, _: None) -> None:
        self._last(2)

    def _tuple3(self, _: None) -> None:
        self._last(3)

    def _last(self, count: int) -> None:
        if len(self.stack) < count:
            raise IndexError("its pickle ends in the middle")
        self.stack[-count:] = [tuple(self.stack[-count:])]

    def _empty_list(self, _: None) -> None:
        self.stack.append([])

    def _append(self, _: None) -> None:
        value = self.stack.pop()
        self._list_on_top().append(value)

    def _appends(self, _: None) -> None:
        values = self._since_mark()
        self._list_on_top().extend(values)

    def _list_on_top(self) -> list[Any]:
        if not isinstance(self.stack[-1], list):
            raise ValueError("it appends to something that is no list")
        return self.stack[-1]

    def _binput(self, argument: int) -> None:
        self.memo[argument] = self.stack[-1]

    _put = _long_binput = _binput

    def _memoize(self, _: None) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def _binget(self, argument: int) -> None:
        self.stack.append(self.memo[argument])

    _get = _long_binget = _binget

    def _reduce(self, _: None) -> None:
        arguments, called = self.stack.pop(), self.stack.pop()
        role = called.role if isinstance(called, _Name) else None
        if role == "reconstruct":
            self.stack.append(_Array())
        elif role == "dtype" and isinstance(arguments[0], str):
            self.stack.append(_Type(arguments[0]))
        elif role == "encode" and arguments[1] == "latin1":
            self.stack.append(arguments[0].encode("latin-1"))
        elif role == "bytes" and arguments == ():
            self.stack.append(b"")
        else:
            raise ValueError("refused, its pickle calls something that is no part of a NumPy array")

    def _build(self, _: None) -> None:
        state, built = self.stack.pop(), self.stack[-1]
        if isinstance(built, _Array):
            built.state = state
        elif isinstance(built, _Type):
            if any(state[2:5]):
                raise ValueError("its values are records, not plain numbers")
            built.order = state[1]
        else:
            raise ValueError("refused, its pickle sets the state of something that is no NumPy array")
