#include "import/pt2_weights.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "import/pt2_types.h"

namespace coil {
namespace {

constexpr int kMaxConfigDepth = 20;
constexpr std::uintptr_t kAlignment = 64;  // of the data of weights

i64 constant_of(const Json& value, SymbolTable& symbols, const std::string& fqn) {
  const std::optional<i64> number = symbols.syms().as_const(sym_int_of(value, symbols));
  if (!number) fail("weight '{}' has a size that is not fixed", fqn);
  return *number;
}

/// Elements from the start of the storage up to the last one of the view; nothing on overflow or
/// for a negative place. 0 for a view without elements.
std::optional<i64> last_element(const sym::Arena& syms, const WeightView& view) {
  i64 end = view.offset;
  if (end < 0) return std::nullopt;
  for (std::size_t d = 0; d < view.type.ndim(); ++d) {
    const i64 size = syms.as_const(view.type.shape[d]).value_or(-1);
    const i64 stride = syms.as_const(view.type.strides[d]).value_or(-1);
    if (size == 0) return 0;
    i64 step = 0;
    if (size < 0 || stride < 0 || __builtin_mul_overflow(size - 1, stride, &step) ||
        __builtin_add_overflow(end, step, &end))
      return std::nullopt;
  }
  i64 count = 0;
  return __builtin_add_overflow(end, 1, &count) ? std::nullopt : std::optional<i64>(count);
}

/// The bytes at an aligned address: a re-zipped file may have moved them.
Bytes aligned(Bytes bytes) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data) % kAlignment == 0 || bytes.size == 0)
    return bytes;
  const std::size_t size = static_cast<std::size_t>(bytes.size);
  void* memory = ::operator new(size, std::align_val_t(kAlignment));
  std::memcpy(memory, bytes.data, size);
  std::shared_ptr<const void> owner(
      memory, [](void* p) { ::operator delete(p, std::align_val_t(kAlignment)); });
  return Bytes{static_cast<const std::byte*>(memory), bytes.size, std::move(owner)};
}

}  // namespace

WeightTable::WeightTable(const Pt2Place& place, SymbolTable& symbols) : place_(place) {
  read_config("data/weights/", "_weights_config.json", symbols);
  read_config("data/constants/", "_constants_config.json", symbols);
}

void WeightTable::read_config(const std::string& folder, const std::string& suffix,
                              SymbolTable& symbols) {
  const std::string name = folder + place_.model + suffix;
  const ArchiveEntry* entry = place_.archive.find(place_.root + name);
  if (entry == nullptr) fail("{}: the record {} is missing", place_.archive.path(), name);
  const Bytes bytes = value_or_throw(place_.archive.read(*entry, Checksum::Verify));
  const Json document = parse_json(bytes.text(), name, kMaxConfigDepth);
  for (const auto& [fqn, payload] : object_of(field(document, "config")).items()) {
    const Json* pickled = find_field(payload, "use_pickle");
    const Json* meta = find_field(payload, "tensor_meta");
    if ((pickled != nullptr && bool_of(*pickled)) || meta == nullptr) {
      refused_[fqn] =
          meta == nullptr
              ? "is a custom object, which coil does not support"
              : "is a tensor subclass stored as a Python pickle, which coil does not read; "
                "turn it into a plain tensor (unwrap or dequantise it) and export again";
      continue;
    }
    try {
      WeightView view;
      const std::string path = text_field(payload, "path_name");
      view.record = folder + path;
      view.type = tensor_type_of(*meta, symbols);
      for (sym::Expr e : view.type.shape)
        if (!symbols.syms().as_const(e)) fail("its size is not fixed");
      for (sym::Expr e : view.type.strides)
        if (!symbols.syms().as_const(e)) fail("its strides are not fixed");
      view.offset = constant_of(field(*meta, "storage_offset"), symbols, fqn);
      views_[fqn] = std::move(view);
    } catch (const BuildError& problem) {
      refused_[fqn] = str("cannot be read: {}", problem.error.message);
    }
  }
}

const WeightView& WeightTable::find(const std::string& fqn) const {
  if (const auto refused = refused_.find(fqn); refused != refused_.end())
    fail("weight '{}' {}", fqn, refused->second);
  const auto found = views_.find(fqn);
  if (found == views_.end()) fail("weight '{}' is missing in the file", fqn);
  return found->second;
}

const ArchiveEntry& WeightTable::entry(const std::string& record) const {
  const ArchiveEntry* found = place_.archive.find(place_.root + record);
  if (found == nullptr) fail("{}: the record {} is missing", place_.archive.path(), record);
  return *found;
}

i64 WeightTable::record_elements(const WeightView& view) const {
  return entry(view.record).size / size_of(view.type.dtype);
}

u32 WeightTable::storage(Graph& graph, const WeightView& view, const std::string& fqn) {
  const ArchiveEntry& record = entry(view.record);
  const std::optional<i64> elements = last_element(*graph.syms, view);
  const i64 held = record.size / size_of(view.type.dtype);
  const bool is_absent = record.size == 0 && elements && *elements > 0;
  if (!elements || (!is_absent && *elements > held))
    fail("weight '{}' reaches outside of its record {}, which has {} bytes (written by torch {})",
         fqn, view.record, record.size, place_.torch_version);
  const auto known = storages_.find(view.record);
  if (known != storages_.end()) return known->second;
  Storage storage;
  storage.source = is_absent ? StorageSource::Absent : StorageSource::File;
  storage.file = place_.archive.path();
  storage.key = view.record;
  if (!is_absent) {
    const Bytes bytes =
        aligned(value_or_throw(place_.archive.read(record, Checksum::Skip, INT64_MAX)));
    storage.data = bytes.data;
    storage.bytes = bytes.size;
    storage.owner = bytes.owner;
  }
  graph.storages.push_back(std::move(storage));
  return storages_[view.record] = static_cast<u32>(graph.storages.size() - 1);
}

}  // namespace coil
