// Between the operands of a call and dense columns of double.

#include "runtime/factor/matrix.h"

namespace coil::runtime::factor {
namespace {

/// Calls f with the operand's elements as what they are: float or double.
template <class F>
void with_elements(const CallOperand& o, const F& f) {
  if (o.dtype == DType::f32) return f(reinterpret_cast<float*>(o.data));
  COIL_CHECK(o.dtype == DType::f64, "a matrix of {}", name(o.dtype));
  f(reinterpret_cast<double*>(o.data));
}

/// Steps from one row and column to the next, and between the parts of a complex number.
struct Steps {
  i64 start = 0, row = 0, column = 0, part = 0;
};

template <class T>
Steps steps_of(const CallOperand& o, i64 batch, std::size_t dims) {
  Steps s;
  s.start = batch * o.strides[0];
  s.row = o.strides[1];
  if (dims == 2) s.column = o.strides[2];
  if (kIsComplex<T>) s.part = o.strides[dims + 1];
  return s;
}

template <class T>
void load_columns(const CallOperand& o, Steps s, Matrix<T> to) {
  with_elements(o, [&](const auto* from) {
    for (i64 j = 0; j < to.cols; ++j)
      for (i64 i = 0; i < to.rows; ++i) {
        const auto* at = from + s.start + i * s.row + j * s.column;
        if constexpr (kIsComplex<T>)
          to(i, j) = {static_cast<double>(at[0]), static_cast<double>(at[s.part])};
        else
          to(i, j) = static_cast<double>(*at);
      }
  });
}

template <class T>
void store_columns(const CallOperand& o, Steps s, Matrix<T> from) {
  with_elements(o, [&](auto* to) {
    using E = std::remove_pointer_t<decltype(to)>;
    for (i64 j = 0; j < from.cols; ++j)
      for (i64 i = 0; i < from.rows; ++i) {
        E* at = to + s.start + i * s.row + j * s.column;
        at[0] = static_cast<E>(real(from(i, j)));
        if (kIsComplex<T>) at[s.part] = static_cast<E>(imag(from(i, j)));
      }
  });
}

}  // namespace

template <class T>
void load(const Task& task, std::size_t operand, Matrix<T> to) {
  const CallOperand& o = task.args.operands[operand];
  load_columns(o, steps_of<T>(o, task.batch, 2), to);
}
template <class T>
void load(const Task& task, std::size_t operand, T* to) {
  const CallOperand& o = task.args.operands[operand];
  load_columns(o, steps_of<T>(o, task.batch, 1), Matrix<T>{to, o.shape[1], 1, o.shape[1]});
}
template <class T>
void store(const Task& task, std::size_t operand, Matrix<T> from) {
  const CallOperand& o = task.args.operands[operand];
  store_columns(o, steps_of<T>(o, task.batch, 2), from);
}
template <class T>
void store(const Task& task, std::size_t operand, const T* from) {
  const CallOperand& o = task.args.operands[operand];
  const i64 n = o.shape[1];
  store_columns(o, steps_of<T>(o, task.batch, 1), Matrix<T>{const_cast<T*>(from), n, 1, n});
}

void load_ints(const Task& task, std::size_t operand, i64* to) {
  const CallOperand& o = task.args.operands[operand];
  const i32* from = reinterpret_cast<const i32*>(o.data) + task.batch * o.strides[0];
  for (i64 i = 0; i < o.shape[1]; ++i) to[i] = from[i * o.strides[1]];
}
void store_ints(const Task& task, std::size_t operand, const i64* from) {
  const CallOperand& o = task.args.operands[operand];
  const i64 start = task.batch * o.strides[0];
  for (i64 i = 0; i < o.shape[1]; ++i) {
    const i64 at = start + i * o.strides[1];
    if (o.dtype == DType::i64)
      reinterpret_cast<i64*>(o.data)[at] = from[i];
    else
      reinterpret_cast<i32*>(o.data)[at] = static_cast<i32>(from[i]);
  }
}
void store_info(const Task& task, std::size_t operand, i64 info) {
  const CallOperand& o = task.args.operands[operand];
  reinterpret_cast<i32*>(o.data)[task.batch * o.strides[0]] = static_cast<i32>(info);
}

#define COIL_OPERANDS_OF(T)                                    \
  template void load<T>(const Task&, std::size_t, Matrix<T>);  \
  template void load<T>(const Task&, std::size_t, T*);         \
  template void store<T>(const Task&, std::size_t, Matrix<T>); \
  template void store<T>(const Task&, std::size_t, const T*);
COIL_OPERANDS_OF(double)
COIL_OPERANDS_OF(Complex)
#undef COIL_OPERANDS_OF

}  // namespace coil::runtime::factor
