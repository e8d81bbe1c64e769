#pragma once
// Arguments of nodes as the schemas see them: kinds, defaults, and access by position.

#include <string>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"
#include "ops/schema.h"

namespace coil {

inline bool is_integer(ops::ArgType type) {
  return type == ops::ArgType::Int || type == ops::ArgType::SymInt;
}
/// The default of `arg`, which must have one: "[0, 1]" gives a list of expressions, "long" i64.
Result<Arg> default_arg(sym::Arena& syms, const ops::SchemaArg& arg);
/// Whether `value` is the default of `arg`, so that printing may leave it out.
bool is_default(sym::Arena& syms, const ops::SchemaArg& arg, const Arg& value);
/// `args` followed by the defaults of the arguments after them. One number for an int[n] becomes n
/// equal ones; an Int value becomes its expression. An Error names an argument of a wrong kind, one
/// too many, or one that is missing.
Result<std::vector<Arg>> complete_args(const Graph& graph, const ops::Schema& schema,
                                       std::vector<Arg> args);
/// Status of one argument: whether its kind is one that the schema allows.
Status check_arg(const Graph& graph, const ops::SchemaArg& schema, const Arg& value);
/// Calls `use` with each value id among the arguments; invalid ids of optional tensors are skipped.
template <class Use>
void each_value(const std::vector<Arg>& args, Use use) {
  for (const Arg& arg : args) {
    if (const ValueId* one = std::get_if<ValueId>(&arg)) use(*one);
    if (const std::vector<ValueId>* list = std::get_if<std::vector<ValueId>>(&arg))
      for (ValueId v : *list)
        if (v.valid()) use(v);
  }
}
/// "a tensor", "an integer", ...: the kind of an argument in messages.
std::string kind_text(const Arg& arg);

}  // namespace coil
