#pragma once
// The text form of level 0. `parse_graph(to_text(g)) == g` up to storage identity.
//
//   graph block(%x: f32[s0, 768], %n "user.n": int s1) {
//     size s0 in 1..4096 hint 128               # may be left out: any size of at least 0
//     data u0 in 0..100                         # a size or number that nodes compute
//     fact s0 <= 8*s1                           # given by the program
//     check s0 % 4 == 0 "rows come in fours"    # tested when called
//     const %g: f32[768] = file "block.npz" "g"
//     const %w "layer.weight": f32[3, 2] strides [1, 3] = seed 8
//     const %v: f32[2] offset 3 = of %w         # views the same memory
//     state %count: i64[] = {0}                 # flat elements of the storage; or `absent`
//     graph then_0(%a: f32[3]) { ... }
//     %add = add.Tensor(%x, %r, alpha=2) : f32[s0, 768] @ model.py:12 in encoder.layer.0
//     %t2 = update(%t1, %v) at slice.Tensor(0, 0, 4), select.int(1, 2)
//     %c = cond[then_0, else_0](%p, [%g])
//     mutates %x = %t2
//     updates %count = %next
//     return %add, alias %y of input %x, alias %z of output 1, 3, 2.5, None
//   }

#include <string>
#include <string_view>

#include "base/result.h"
#include "graph/graph.h"

namespace coil {

struct GraphTextOptions {
  const CompositeRules* composites = nullptr;  // becomes Graph::composites
  i64 max_data_bytes = i64{1} << 31;           // of all inline and seeded constants together
};

std::string to_text(const Graph& graph);
/// `file` is for messages; `file "x.npz"` constants get their source only, whoever has the folder
/// loads them. Types after a colon may be left out, where the shape rules give them; one that
/// differs is an error.
Result<Graph> parse_graph(std::string_view text, const std::string& file,
                          const GraphTextOptions& options = {});

}  // namespace coil
