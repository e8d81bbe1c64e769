#pragma once
// The part of DLPack's C ABI (github.com/dmlc/dlpack, version 1.3) that coil reads: how a tensor
// object shows its memory without a copy or a reference.

#include <cstdint>

namespace coil::python {

struct DlDevice {
  int32_t type;  // 1: CPU
  int32_t id;
};
inline constexpr int32_t kDlCpu = 1;

struct DlDataType {
  uint8_t code;  // 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool, 10 and 12 float8
  uint8_t bits;
  uint16_t lanes;
};

struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlDataType dtype;
  int64_t* shape;    // owned by the tensor object
  int64_t* strides;  // the same, in elements
  uint64_t byte_offset;
};

/// What `type(tensor).__dlpack_c_exchange_api__` points to. Of its functions coil calls the one
/// that fills in a DlTensor; it gives 0, or sets a Python exception.
struct DlExchangeTable {
  uint32_t major, minor;
  void* previous;
  void* allocate;
  void* managed_from_object;
  void* object_from_managed;
  int (*view_of_object)(void* object, DlTensor* out);
  void* current_stream;
};

}  // namespace coil::python
