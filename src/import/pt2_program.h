#pragma once
// One model of a .pt2: signature, weights, symbols, guards, nodes and outputs, put together.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "import/guards.h"
#include "import/program_reader.h"
#include "import/pt2.h"
#include "import/pt2_inputs.h"
#include "import/pt2_weights.h"

namespace coil {

class Pt2ProgramReader : private ProgramReader {
 public:
  /// `shared`: records whose tensors are taken as views of one constant.
  Pt2ProgramReader(const Pt2Place& place, const Json& document, const CompositeRules* composites,
                   const std::set<std::string>& shared);

  void read();
  /// Records of which one tensor is written to while another tensor of theirs is read too.
  std::set<std::string> written_shared_records() const;
  Pt2Program finish();

 private:
  struct Loaded {
    std::string record;
    std::string layout;  // type and offset in words; equal ones are one tensor
    TensorId tensor;
  };
  NamedValue lookup(const std::string& name) override;
  TensorId load(const std::string& fqn, const std::string& placeholder);
  TensorId shared_base(const WeightView& view, const std::string& fqn);

  void read_inputs();
  void add_constant_input(const Json& spec, const InputName& name);
  void read_guards();
  void apply_mutations();
  void add_outputs();

  Pt2Program program_;
  const Json& document_;
  const Json& graph_module_;
  const std::set<std::string>& shared_;
  WeightTable weights_;
  std::map<std::string, std::string> constants_;     // placeholder to FQN
  std::map<std::string, std::string> placeholders_;  // FQN to placeholder
  std::vector<Loaded> loaded_;
  std::map<std::string, TensorId> shared_bases_;
  std::map<std::string, ValueId> guard_inputs_;
};

}  // namespace coil
