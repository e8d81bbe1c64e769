#pragma once
// NumPy's .npy (format 1.0 to 3.0) and .npz files, read and written. Layout: numpy.lib.format of
// the NumPy manual.

#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "import/archive.h"

namespace coil {

/// An array in row-major order. `data` is aligned to its elements and lives as long as `owner`.
struct NpyArray {
  std::string name;
  DType dtype = DType::f32;
  std::vector<i64> shape;
  const std::byte* data = nullptr;
  i64 bytes = 0;
  std::shared_ptr<const void> owner;
};

/// One .npy file. A row-major array is a view of `file` where its alignment allows, others are
/// copied.
Result<NpyArray> read_npy(const Bytes& file, const std::string& name);
/// Every array of an .npz, in the order of their names, or the one array of an .npy.
Result<std::vector<NpyArray>> read_npz(const std::string& path);
Result<std::vector<NpyArray>> read_npz(Bytes file, const std::string& path);

/// Writes an uncompressed .npz under a temporary name beside `path` and renames it, so that `path`
/// holds all of it or what it held before. bf16 is written as u16, the 8-bit floats as u8 and c32
/// as pairs of f16, since NumPy has no such types; the names must say so to whoever reads them.
Status write_npz(const std::string& path, std::span<const NpyArray> arrays);

}  // namespace coil
