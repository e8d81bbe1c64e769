#include "tensors.h"

namespace coil::python {
namespace {

struct DtypeRow {
  DType dtype;
  const char* torch_name;
  uint8_t code, bits;  // DLPack's
};
constexpr DtypeRow kDtypes[] = {
    {DType::u8, "uint8", 1, 8},
    {DType::i8, "int8", 0, 8},
    {DType::i16, "int16", 0, 16},
    {DType::i32, "int32", 0, 32},
    {DType::i64, "int64", 0, 64},
    {DType::u16, "uint16", 1, 16},
    {DType::u32, "uint32", 1, 32},
    {DType::u64, "uint64", 1, 64},
    {DType::b8, "bool", 6, 8},
    {DType::f16, "float16", 2, 16},
    {DType::bf16, "bfloat16", 4, 16},
    {DType::f32, "float32", 2, 32},
    {DType::f64, "float64", 2, 64},
    {DType::f8e4m3fn, "float8_e4m3fn", 10, 8},
    {DType::f8e5m2, "float8_e5m2", 12, 8},
    {DType::c32, "complex32", 5, 32},
    {DType::c64, "complex64", 5, 64},
    {DType::c128, "complex128", 5, 128},
};
static_assert(std::size(kDtypes) == kNumDTypes);

constexpr const char* kTableName = "__dlpack_c_exchange_api__";

/// The tensor that DLPack shows; false where coil takes none like it.
bool read(const DlTensor& t, runtime::Tensor& out) {
  if (t.device.type != kDlCpu) return false;
  const DtypeRow* found = nullptr;
  for (const DtypeRow& row : kDtypes)
    if (row.code == t.dtype.code && row.bits == t.dtype.bits) found = &row;
  if (!found) return false;
  out.dtype = found->dtype;
  out.shape.assign(t.shape, t.shape + t.ndim);
  out.strides.assign(t.strides, t.strides + t.ndim);
  out.data = static_cast<std::byte*>(t.data) + t.byte_offset;
  return true;
}

/// `object.a.b` for {a, b}; null where this torch has none.
nb::object find(nb::object object, std::initializer_list<const char*> path) {
  for (const char* name : path) {
    if (!nb::hasattr(object, name)) return {};
    object = object.attr(name);
  }
  return object;
}

nb::object call(PyObject* function, PyObject* const* args, std::size_t count, PyObject* kwnames) {
  PyObject* result = PyObject_Vectorcall(function, args, count, kwnames);
  if (!result) throw nb::python_error();
  return nb::steal(result);
}

void read_integers(nb::handle sequence, std::vector<i64>& out) {
  const Py_ssize_t count = PyTuple_GET_SIZE(sequence.ptr());  // torch.Size is a tuple
  out.resize(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i)
    out[static_cast<std::size_t>(i)] = PyLong_AsLongLong(PyTuple_GET_ITEM(sequence.ptr(), i));
}

}  // namespace

nb::object tuple_of(std::span<const i64> values) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  if (!tuple) throw nb::python_error();
  for (std::size_t i = 0; i < values.size(); ++i)
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(values[i]));
  return tuple;
}

Torch::Torch() {
  const nb::object torch = nb::module_::import_("torch");
  tensor_type_ = torch.attr("Tensor");
  parameter_type_ = torch.attr("nn").attr("Parameter");
  empty_strided_ = torch.attr("empty_strided");
  // What torch's own compiled code calls, which passes by the dispatcher.
  empty_strided_cpu_ = find(torch, {"_C", "_dynamo", "guards", "_empty_strided_cpu"});
  as_strided_ = torch.attr("as_strided");
  cpu_ = torch.attr("device")("cpu");
  empty_kwnames_ = nb::make_tuple("dtype", "device");
  dtypes_.resize(kNumDTypes);
  for (const DtypeRow& row : kDtypes) {
    if (!nb::hasattr(torch, row.torch_name)) continue;
    dtypes_[static_cast<std::size_t>(row.dtype)] = torch.attr(row.torch_name);
    by_dtype_[dtypes_[static_cast<std::size_t>(row.dtype)].ptr()] = row.dtype;
  }
  data_ptr_ = nb::str("data_ptr");
  shape_ = nb::str("shape");
  stride_ = nb::str("stride");
  dtype_ = nb::str("dtype");
  is_cpu_ = nb::str("is_cpu");
  storage_offset_ = nb::str("storage_offset");
  untyped_storage_ = nb::str("untyped_storage");
  nbytes_ = nb::str("nbytes");
  view_ = nb::str("view");
  to_dlpack_ = find(torch, {"to_dlpack"});
  if (const nb::object capsule = find(tensor_type_, {kTableName})) {
    const auto* table = static_cast<const DlExchangeTable*>(
        PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
    if (!table) throw nb::python_error();
    if (table->major == 1) table_ = table;
  }
}

bool Torch::is_tensor(PyObject* object) const {
  const PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  return type == tensor_type_.ptr() || type == parameter_type_.ptr() ||
         PyObject_IsInstance(object, tensor_type_.ptr()) == 1;
}

void Torch::view(PyObject* object, runtime::Tensor& out) const {
  out.owner.reset();
  // Subclasses have the table too, but not always memory behind it.
  const PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  const bool is_plain = type == tensor_type_.ptr() || type == parameter_type_.ptr();
  if (!is_plain || !view_by_dlpack(object, out)) view_by_attributes(object, out);
}

bool Torch::view_by_dlpack(PyObject* object, runtime::Tensor& out) const {
  // What cannot be shown so has its reason from the attributes.
  if (table_) {
    DlTensor t;
    if (table_->view_of_object(object, &t) == 0) return read(t, out);
    PyErr_Clear();
    return false;
  }
  if (!to_dlpack_) return false;
  // What the capsule holds begins with what it shows, and goes with it; the memory is `object`'s.
  const nb::object capsule = nb::steal(PyObject_CallOneArg(to_dlpack_.ptr(), object));
  const void* shown = capsule ? PyCapsule_GetPointer(capsule.ptr(), "dltensor") : nullptr;
  if (shown) return read(*static_cast<const DlTensor*>(shown), out);
  PyErr_Clear();
  return false;
}

void Torch::view_by_attributes(PyObject* object, runtime::Tensor& out) const {
  const nb::handle tensor(object);
  const nb::object dtype = tensor.attr(dtype_);
  const auto row = by_dtype_.find(dtype.ptr());
  if (row == by_dtype_.end())
    throw nb::type_error(str("coil has no {}", nb::str(dtype).c_str()).c_str());
  const nb::object is_cpu = tensor.attr(is_cpu_);
  if (is_cpu.ptr() != Py_True)
    throw nb::value_error("coil runs on the CPU; this tensor is on another device");
  out.dtype = row->second;
  read_integers(tensor.attr(shape_), out.shape);
  read_integers(tensor.attr(stride_)(), out.strides);
  if (PyErr_Occurred()) throw nb::python_error();  // a size that is no int
  out.data = address(object);
}

std::byte* Torch::address(PyObject* tensor) const {
  PyObject* self[] = {tensor};
  const nb::object answer = nb::steal(PyObject_VectorcallMethod(data_ptr_.ptr(), self, 1, nullptr));
  if (!answer) throw nb::python_error();
  return reinterpret_cast<std::byte*>(nb::cast<std::uintptr_t>(answer));
}

std::byte* Torch::data(PyObject* tensor) const {
  DlTensor t;
  if (table_ && table_->view_of_object(tensor, &t) == 0)
    return static_cast<std::byte*>(t.data) + t.byte_offset;
  PyErr_Clear();
  return address(tensor);
}

nb::object Torch::empty(DType dtype, PyObject* shape, PyObject* strides) const {
  PyObject* args[] = {shape, strides, dtypes_[static_cast<std::size_t>(dtype)].ptr(), cpu_.ptr()};
  if (empty_strided_cpu_) return call(empty_strided_cpu_.ptr(), args, 3, nullptr);
  return call(empty_strided_.ptr(), args, 2, empty_kwnames_.ptr());
}

nb::object Torch::as_strided(PyObject* base, PyObject* shape, PyObject* strides, i64 offset) const {
  const nb::object start = nb::steal(PyLong_FromLongLong(offset));
  PyObject* args[] = {base, shape, strides, start.ptr()};
  return call(as_strided_.ptr(), args, 4, nullptr);
}

nb::object Torch::retyped(PyObject* tensor, DType dtype) const {
  return nb::handle(tensor).attr(view_)(dtypes_[static_cast<std::size_t>(dtype)]);
}

i64 Torch::storage_offset(PyObject* tensor) const {
  return nb::cast<i64>(nb::handle(tensor).attr(storage_offset_)());
}

std::span<std::byte> Torch::storage(PyObject* tensor) const {
  const nb::object storage = nb::handle(tensor).attr(untyped_storage_)();
  const auto address = nb::cast<std::uintptr_t>(storage.attr(data_ptr_)());
  return {reinterpret_cast<std::byte*>(address), nb::cast<std::size_t>(storage.attr(nbytes_)())};
}

}  // namespace coil::python
