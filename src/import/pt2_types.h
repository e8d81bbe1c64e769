#pragma once
// Numbers and tensor metadata of a .pt2 as coil's types.

#include "import/json.h"
#include "import/symbols.h"

namespace coil {

/// By the file's own numbering, which is not PyTorch's.
DType dtype_of_file(i64 number);
/// None for the formats that say nothing.
Arg memory_format_of_file(i64 number);

/// {"as_int": 3} or {"as_expr": {"expr_str": ..., "hint": ...}}; an Error where it is no integer.
sym::Expr sym_int_of(const Json& value, SymbolTable& symbols);
/// The number that the file states for a SymInt, SymFloat or SymBool; nothing where it has no exact
/// form.
std::optional<HostNumber> host_number_of(const Json& value, SymbolTable& symbols);
/// A TensorMeta as a Type, with its strides.
Type tensor_type_of(const Json& meta, SymbolTable& symbols);

}  // namespace coil
