#pragma once
// Weights, buffers and constants of a .pt2: raw records of the archive, seen through strides.

#include <map>
#include <string>

#include "graph/graph.h"
#include "import/archive.h"
#include "import/json.h"
#include "import/symbols.h"

namespace coil {

/// Where a .pt2's parts are: the archive, the root folder of its records, and one of its models.
struct Pt2Place {
  const Archive& archive;
  std::string root;   // "model/", with the slash; may be empty
  std::string model;  // "model"
  std::string torch_version;
};

/// One tensor of a record.
struct WeightView {
  std::string record;  // "data/weights/weight_0"
  Type type;
  i64 offset = 0;  // elements
};

class WeightTable {
 public:
  /// Reads both config files. Throws BuildError.
  WeightTable(const Pt2Place& place, SymbolTable& symbols);

  /// The tensor of a parameter, buffer or constant; an Error that says what is wrong with it.
  const WeightView& find(const std::string& fqn) const;
  /// The record's bytes as a storage of `graph`, added when it is first asked for; checked to hold
  /// all of `view`.
  u32 storage(Graph& graph, const WeightView& view, const std::string& fqn);
  /// Elements of the record, counted in the view's dtype.
  i64 record_elements(const WeightView& view) const;

 private:
  void read_config(const std::string& folder, const std::string& suffix, SymbolTable& symbols);
  const ArchiveEntry& entry(const std::string& record) const;

  const Pt2Place& place_;
  std::map<std::string, WeightView> views_;
  std::map<std::string, std::string> refused_;  // FQN to the reason
  std::map<std::string, u32> storages_;         // record to index
};

}  // namespace coil
