// A program as a whole: its inputs, how often each kind of body comes, its outputs.

#include "random_program.h"

#include "random_generator.h"

namespace coil::random_program {

void Generator::add_inputs() {
  const std::vector<i64> common = {1, 2, 3, 4, 5, 8, 15, 16, 17, 20, 33, 48};
  for (i64 i = 0; i < 2 + below(2); ++i)
    extents_.push_back(constant(chance(2)   ? 0
                                : chance(6) ? (chance(10) ? 2100 : 60 + below(80))
                                            : any(common)));
  if (chance(25)) {
    const Size s{"s0", chance(8) ? 0 : any(common)};
    sizes_["s0"] = s.value;
    text_ += str("  size s0 in 0..99999 hint {}\n", chance(20) ? 9000 : any(common));
    extents_.push_back(s);
    declare("f32", {s}, "input");
  }
  if (chance(12)) {
    const Size u{"u0", chance(8) ? 0 : any(common)};
    text_ +=
        str("  size u0 in 0..64 from %count\n  buffer %count: i64[]\n  body counting {{\n    v0 = "
            "const i64 {}\n"
            "    store %count[], v0\n  }}\n",
            u.value);
    extents_.push_back(u);
  }
  const std::vector<std::string> dtypes = {"f32", "f32", "f32",  "f32", "f64",
                                           "i64", "i32", "bool", "bf16"};
  const std::vector<Size> known(extents_.begin(), extents_.end());
  std::erase_if(extents_, is_from_data);
  const Shape main = some_shape();
  declare("f32", main, "input");
  declare(any(dtypes), main, "input");
  for (i64 i = 0; i < 1 + below(3); ++i) declare(any(dtypes), some_shape(), "input");
  if (chance(30)) declare("i64", {any(extents_)}, "input");
  extents_ = known;
}

void Generator::step() {
  const std::size_t source = pick();
  const i64 kind = below(100);
  if (kind < 50)
    pointwise(source);
  else if (kind < 64)
    reduction(source);
  else if (kind < 66)
    window(source);
  else if (kind < 72)
    softmax(source);
  else if (kind < 76)
    norm(source);
  else if (kind < 79)
    scan(source);
  else if (kind < 83)
    partial(source);
  else if (kind < 85)
    shifted_write(source);
  else if (kind < 88)
    scatter(source);
  else if (kind < 90)
    cat(source);
  else if (kind < 92)
    halves(source);
  else if (kind < 96)
    gemm(source);
  else if (kind < 98)
    conv();
  else
    init_chain();
}

Text Generator::make() {
  add_inputs();
  const int most = 3 + static_cast<int>(chance(60) ? below(10) : below(26));
  for (int tries = 0; steps_ < most && tries < 100; ++tries) step();
  // What nobody reads is a result, and some of what is read.
  for (const Buffer& b : buffers_) {
    const std::string mark = " @" + b.name + "@";
    const std::size_t at = text_.find(mark);
    if (at == std::string::npos) continue;
    const bool is_output = b.reads == 0 || chance(12);
    text_.replace(at, mark.size(), is_output ? " " : b.strides + " ");
    if (is_output) text_.insert(text_.find('\n', at), " output");
  }
  return {"program p {\n" + text_ + "}\n", sizes_};
}

Text make(u64 seed) { return Generator(seed).make(); }

}  // namespace coil::random_program
