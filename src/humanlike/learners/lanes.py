"""Short vectors inside compiled code: what Numba's own loops cannot say, written as LLVM instructions.

An octet is eight float64 side by side: one AVX-512 register, two AVX2 ones, four NEON ones; LLVM splits it as the
machine needs. Sums are taken in the order of the trials, product by product, and never regrouped or contracted to fused
multiply-adds: actions with equal weights stay tied to the last bit.

Arrays are flat and start on a cache line (`aligned`); offsets count elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils
from numba.extending import intrinsic

OCTET = 8
LANES = 32  # sessions that advance together, a multiple of OCTET

_instruction: Any = intrinsic  # without the type that hides the context from callers
_F8, _I8 = ir.DoubleType(), ir.IntType(64)
_POINTER = _F8.as_pointer()
_VECTOR = ir.VectorType(_F8, OCTET)
_UNDEFINED = ir.Constant(_VECTOR, ir.Undefined)


def aligned(count: int, dtype: Any = np.float64) -> np.ndarray:
    """Zeros that start on a cache line of 64 bytes."""
    size = np.dtype(dtype).itemsize
    whole = np.zeros(count + 64 // size, dtype=dtype)
    skip = -whole.ctypes.data % 64 // size
    return whole[skip : skip + count]


def _data(context: Any, builder: Any, kind: Any, array: Any, offset: Any = None) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return data if offset is None else builder.gep(data, [offset])


def _octet(builder: Any, pointer: Any, offset: Any) -> Any:
    return builder.bitcast(builder.gep(pointer, [offset]), _VECTOR.as_pointer())


def _lane(number: int) -> Any:
    return ir.Constant(ir.IntType(32), number)


def _broadcast(builder: Any, value: Any) -> Any:
    mask = ir.Constant(ir.VectorType(ir.IntType(32), OCTET), [0] * OCTET)
    return builder.shuffle_vector(builder.insert_element(_UNDEFINED, value, _lane(0)), _UNDEFINED, mask)


def _make_pull(rows: int, gathers: bool) -> Callable[..., Any]:
    @_instruction
    def pull(
        typingctx: Any,
        matrix: Any,
        size: Any,
        images: Any,
        at: Any,
        past: Any,
        first: Any,
        count: Any,
        entries: Any,
        coefficients: Any,
        c0: Any,
        c_row: Any,
        sums: Any,
        s0: Any,
        s_row: Any,
    ) -> Any:
        names = (matrix, size, images, at, past, first, count, entries, coefficients, c0, c_row, sums, s0, s_row)

        def codegen(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            kinds = signature.args
            K = _data(context, builder, kinds[0], given[0])
            image = _data(context, builder, kinds[2], given[2], given[3])
            before = _data(context, builder, kinds[4], given[4], given[5])
            entry = _data(context, builder, kinds[7], given[7])
            C = _data(context, builder, kinds[8], given[8], given[9])
            F = _data(context, builder, kinds[11], given[11], given[12])
            size, count, c_row, s_row = given[1], given[6], given[10], given[13]
            zero = ir.Constant(_VECTOR, [0.0] * OCTET)
            total = [cgutils.alloca_once_value(builder, zero) for _ in range(rows)]
            shown = []
            for b in range(OCTET if gathers else 0):
                number = builder.load(builder.gep(image, [_I8(b)]))
                shown.append(builder.gep(K, [builder.mul(builder.zext(number, _I8), size)]))
            with cgutils.for_range(builder, count) as loop:
                place = _octet(builder, entry, builder.mul(loop.index, _I8(OCTET)))
                if gathers:
                    number, k = builder.zext(builder.load(builder.gep(before, [loop.index])), _I8), _UNDEFINED
                    for b in range(OCTET):
                        k = builder.insert_element(k, builder.load(builder.gep(shown[b], [number])), _lane(b))
                    builder.store(k, place, align=64)
                else:
                    k = builder.load(place, align=64)
                for r in range(rows):
                    at = builder.add(builder.mul(_I8(r), c_row), loop.index)
                    product = builder.fmul(_broadcast(builder, builder.load(builder.gep(C, [at]))), k)
                    builder.store(builder.fadd(builder.load(total[r]), product), total[r])
            for r in range(rows):
                builder.store(builder.load(total[r]), _octet(builder, F, builder.mul(_I8(r), s_row)), align=64)
            return context.get_dummy_value()

        return numba.void(*names), codegen

    return pull


# One session: sums[s0 + r s_row + b] = Σ_s C[c0 + r c_row + s] K[past[first + s], images[at + b]] over s < count, for
# eight trials b. The first form gathers the entries of K and keeps them for the others.
gather_and_pull = _make_pull(2, gathers=True)
pull_2 = _make_pull(2, gathers=False)
pull_4 = _make_pull(4, gathers=False)


@_instruction
def transpose(typingctx: Any, source: Any, i0: Any, i_step: Any, target: Any, o0: Any, o_step: Any) -> Any:
    """target[o0 + b o_step + j] = source[i0 + j i_step + b] for j, b < 8: within registers, in three exchanges."""

    def codegen(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        rows = _data(context, builder, signature.args[0], given[0], given[1])
        out = _data(context, builder, signature.args[3], given[3], given[4])
        v = [builder.load(_octet(builder, rows, builder.mul(_I8(j), given[2])), align=64) for j in range(OCTET)]
        for bit in (1, 2, 4):
            low = [OCTET + e - bit if e & bit else e for e in range(OCTET)]
            high = [OCTET + e if e & bit else e + bit for e in range(OCTET)]
            masks = [ir.Constant(ir.VectorType(ir.IntType(32), OCTET), mask) for mask in (low, high)]
            for i in (i for i in range(OCTET) if not i & bit):
                v[i], v[i + bit] = (builder.shuffle_vector(v[i], v[i + bit], mask) for mask in masks)
        for b in range(OCTET):
            builder.store(v[b], _octet(builder, out, builder.mul(_I8(b), given[5])), align=64)
        return context.get_dummy_value()

    return numba.void(source, i0, i_step, target, o0, o_step), codegen


@_instruction
def bits_of(typingctx: Any, value: Any) -> Any:
    """The bits of a float64 as a whole number."""
    return numba.int64(numba.float64), lambda context, builder, signature, given: builder.bitcast(given[0], _I8)


@_instruction
def from_bits(typingctx: Any, bits: Any) -> Any:
    """The float64 with these bits."""
    return numba.float64(numba.int64), lambda context, builder, signature, given: builder.bitcast(given[0], _F8)


@_instruction
def pointer(typingctx: Any, array: Any, offset: Any) -> Any:
    """Pointer to an element of an array."""

    def codegen(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return _data(context, builder, signature.args[0], given[0], given[1])

    return numba.types.CPointer(array.dtype)(array, numba.int64), codegen


@_instruction
def shifted(typingctx: Any, start: Any, offset: Any) -> Any:
    """A float64 pointer moved on by a number of elements."""
    return start(start, numba.int64), lambda context, builder, signature, given: builder.gep(given[0], [given[1]])


@_instruction
def call(typingctx: Any, address: Any, arguments: Any) -> Any:
    """Call the compiled function at an address with a tuple of pointers and whole numbers, for a whole number."""

    def codegen(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        values = cgutils.unpack_tuple(builder, given[1])
        kind = ir.FunctionType(_I8, [value.type for value in values])
        return builder.call(builder.inttoptr(given[0], kind.as_pointer()), values)

    return numba.int64(numba.int64, arguments), codegen
