"""What Triton's interpreter wants of a tensor, over numpy: no torch needed."""

import numpy as np
import triton.language as tl
from launch_table import scratch_of, taken_launches
from triton.runtime import interpreter


def _combine(operation, left, right, dtypes):
    """The combine function on arrays of partial values, element by element."""
    values = [tl.core.tensor(interpreter.TensorHandle(data, dtype.scalar), tl.block_type(dtype.scalar, list(data.shape)))
              for data, dtype in zip([*left, *right], [*dtypes, *dtypes])]
    result = operation.combine_fn.fn(*values)
    return [r.handle.data for r in (result if isinstance(result, tuple) else (result,))]


def _reduce_by_halves(self, inputs):
    """As ReduceOps.generic_reduce, which takes one element at a time and seconds a row."""
    dtypes = [i.dtype for i in inputs]
    data = [np.moveaxis(i.handle.data, self.axis, 0) for i in inputs]
    assert not self.keep_dims
    while len(data[0]) > 1:
        half = len(data[0]) // 2
        data = _combine(self, [d[:half] for d in data], [d[half:] for d in data], dtypes)
    return [self.to_tensor(d[0], dtype) for d, dtype in zip(data, dtypes)]


def _scan_by_doubling(self, inputs):
    """As ScanOps.generic_scan along the first dim. W. Hillis, G. Steele: Data parallel algorithms (1986)."""
    dtypes = [i.dtype for i in inputs]
    data = [i.handle.data for i in inputs]
    assert self.axis == 0
    step = 1
    while step < len(data[0]):
        later = _combine(self, [np.roll(d, step, axis=0) for d in data], data, dtypes)
        data = [np.concatenate([d[:step], after[step:]]) for d, after in zip(data, later)]
        step *= 2
    return [self.to_tensor(d, dtype) for d, dtype in zip(data, dtypes)]


def _splat(self, shape_type, value):
    """As InterpreterBuilder.create_splat, which spreads a scalar comparison as integers, not as bools."""
    data = np.full(shape_type.shape, value.data.flat[0], dtype=value.data.dtype)
    return interpreter.TensorHandle(data, value.dtype.scalar)


_cast = interpreter.InterpreterBuilder.cast_impl


def _cast_rounding_bf16(self, source, dst_type):
    """As InterpreterBuilder.cast_impl, which cuts bits off where compiled code rounds to the nearest."""
    if source.dtype.scalar == tl.float32 and dst_type.scalar == tl.bfloat16:
        bits = np.ascontiguousarray(source.data).view(np.uint32).astype(np.uint64)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        quiet = (bits >> 16) | 0x40
        data = np.where(np.isnan(source.data), quiet, rounded).astype(np.uint16).reshape(source.data.shape)
        return interpreter.TensorHandle(data, tl.bfloat16)
    return _cast(self, source, dst_type)


def _all_ones(self, dtype):
    """As InterpreterBuilder.get_all_ones_value, whose -1 numpy 2 takes for no unsigned integer."""
    kind = interpreter._get_np_dtype(dtype)
    return interpreter.TensorHandle(np.array([-1]).astype(kind), dtype.scalar)


_patch_tensor = interpreter._patch_lang_tensor


def _patch_tensor_with_index(tensor, *scope):
    """As _patch_lang_tensor, whose ends of a range are arrays of one element, which numpy 2.4 takes for no number."""

    def index(self):
        return int(self.handle.data.item())

    _patch_tensor(tensor, *scope)
    if scope:
        scope[0].set_attr(tensor, "__index__", index)
    else:
        tensor.__index__ = index


interpreter._patch_lang_tensor = _patch_tensor_with_index
interpreter.InterpreterBuilder.cast_impl = _cast_rounding_bf16
interpreter.InterpreterBuilder.create_splat = _splat
interpreter.InterpreterBuilder.get_all_ones_value = _all_ones
interpreter.ReduceOps.generic_reduce = _reduce_by_halves
interpreter.ScanOps.generic_scan = _scan_by_doubling

# numpy has no bf16: arrays of uint16 stand for it.
NAMES = {
    "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u16": "uint16", "u32": "uint32",
    "u64": "uint64", "bool": "uint8", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
}


class Storage:
    def __init__(self, array):
        self.array = array

    def data_ptr(self):
        return self.array.ctypes.data

    def cpu(self):
        return self

    def copy_(self, other):
        assert other is self or other.data_ptr() == self.data_ptr()


class Tensor:
    """A contiguous array, shared with the caller. Elements are of coil's `dtype`."""

    def __init__(self, array, dtype):
        assert array.flags.c_contiguous
        self.dtype = NAMES[dtype]
        self.storage = Storage(array)

    def data_ptr(self):
        return self.storage.data_ptr()

    def untyped_storage(self):
        return self.storage

    def new_empty(self, _size, device=None):
        other = object.__new__(Tensor)
        other.dtype, other.storage = self.dtype, self.storage
        return other

    def set_(self, storage, _offset, _size, _stride):
        self.storage = storage

    def storage_offset(self):
        return 0

    def size(self):
        return self.storage.array.shape

    def stride(self):
        return tuple(s // self.storage.array.itemsize for s in self.storage.array.strides)


def launch(entry, arrays, symbols):
    """Runs one kernel of a printed module in the interpreter; `arrays` by buffer name are changed in place.
    Returns the faults."""
    faults = np.zeros(max(1, entry["sites"]), np.int64)
    tensors = {name: Tensor(arrays[name], dtype) for name, dtype, _ in entry["buffers"]}
    for name, dtype, elements in scratch_of(entry, symbols):
        tensors[name] = scratch(dtype, elements)
    for _, step, values, programs, constants in taken_launches(entry, symbols):
        arguments = [tensors[name] for name in step["buffers"]] + values
        if entry["scalars"]:
            arguments.append(Tensor(np.array([arrays["scalars"]], np.float64), "f64"))
        arguments += [scratch(dtype, elements * programs) for dtype, elements in step["kept"]]
        if step["faults"]:
            arguments.append(Tensor(faults, "i64"))
        step["function"][(programs,)](*arguments, **constants)
    return faults


def scratch(dtype, elements):
    size = np.dtype("uint16" if dtype == "bf16" else NAMES[dtype]).itemsize
    return Tensor(np.full(elements * size, 0xFF, np.uint8), dtype)
