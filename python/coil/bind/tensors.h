#pragma once
// torch's tensors as coil's, and back, without a link to torch: through DLPack, by its exchange
// table where torch has it (2.10); what DLPack does not show, through attributes.

#include <nanobind/nanobind.h>

#include <map>
#include <span>
#include <vector>

#include "dlpack_abi.h"
#include "runtime/tensor.h"

namespace coil::python {

namespace nb = nanobind;

/// What is asked of the module torch. All functions need the GIL and throw what Python raises.
class Torch {
 public:
  Torch();

  /// `object` as a tensor on its own memory, which lives as long as the object.
  void view(PyObject* object, runtime::Tensor& out) const;
  /// The first element of a tensor that `empty` made; null where it has none.
  std::byte* data(PyObject* tensor) const;
  bool is_tensor(PyObject* object) const;
  /// A new tensor from torch's allocator.
  nb::object empty(DType dtype, PyObject* shape, PyObject* strides) const;
  /// The view of `base` that begins at element `offset` of its storage.
  nb::object as_strided(PyObject* base, PyObject* shape, PyObject* strides, i64 offset) const;
  /// The same memory as another dtype.
  nb::object retyped(PyObject* tensor, DType dtype) const;
  i64 storage_offset(PyObject* tensor) const;
  /// The whole storage; a tensor without elements has no address of its own.
  std::span<std::byte> storage(PyObject* tensor) const;

 private:
  bool view_by_dlpack(PyObject* object, runtime::Tensor& out) const;
  void view_by_attributes(PyObject* object, runtime::Tensor& out) const;
  std::byte* address(PyObject* tensor) const;

  const DlExchangeTable* table_ = nullptr;
  nb::object tensor_type_, parameter_type_, as_strided_, to_dlpack_, cpu_;
  nb::object empty_strided_, empty_kwnames_;
  nb::object empty_strided_cpu_;         // null where torch has none
  std::vector<nb::object> dtypes_;       // by DType; null where torch has none
  std::map<PyObject*, DType> by_dtype_;  // torch's dtypes live for ever
  nb::object data_ptr_, shape_, stride_, dtype_, is_cpu_, storage_offset_, untyped_storage_,
      nbytes_, view_;
};

/// A tuple of ints.
nb::object tuple_of(std::span<const i64> values);

}  // namespace coil::python
