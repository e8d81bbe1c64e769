#include "schedule_run.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/machine.h"
#include "graph/data.h"
#include "kernel/launches_cpu.h"
#include "kernel_eval.h"
#include "ops/scalar.h"
#include "schedule/memory.h"
#include "target/interp/frame.h"

namespace coil::schedule_run {
namespace {

using interp::Memory;

std::vector<std::byte> dense(const Memory& memory) {
  const i64 n = memory.numel();
  std::vector<i64> addresses(static_cast<std::size_t>(n));
  std::vector<std::byte> out(static_cast<std::size_t>(n * size_of(memory.dtype)));
  memory.addresses(0, n, addresses.data());
  interp::load_elements(memory, n, addresses.data(), out.data());
  return out;
}

class Runner {
 public:
  Runner(const LoopProgram& program, const Schedule& schedule, const interp::Env& env, u64 seed)
      : program_(program), schedule_(schedule), env_(env), random_(seed) {}

  Result<Ran> run(const std::vector<runtime::Value>& inputs) {
    for (const ProgramSize& s : program_.sizes)
      if (s.from.valid()) env_.values.erase(s.var);
    for (const Slot& s : schedule_.slots)
      slots_.emplace_back(static_cast<std::size_t>(env_.at(s.bytes)));
    inputs_ = inputs;
    for (u32 at = 0; at < schedule_.order.size(); ++at)
      if (is_init(at)) COIL_TRY(step(at));
    for (u32 at = 0; at < schedule_.order.size(); ++at)
      if (!is_init(at)) COIL_TRY(step(at));
    for (const ProgramOutput& o : program_.outputs)
      out_.outputs.push_back(dense(*COIL_TRY(memory(o.buffer))));
    return std::move(out_);
  }

 private:
  bool is_init(u32 at) const {
    if (const auto* g = std::get_if<GroupId>(&schedule_.order[at]))
      return schedule_.groups[*g].init;
    if (const auto* n = std::get_if<StructuredId>(&schedule_.order[at]))
      return program_.structured[*n].init;
    return false;
  }

  /// Gives a buffer its memory, where it has some; a size from data is known by then.
  Status place(BufferId b) {
    const Buffer& buffer = program_.buffers[b];
    const BufferPlan& plan = schedule_.buffers.get(b);
    auto m =
        std::make_shared<Memory>(COIL_TRY(interp::evaluate_layout(buffer, env_, buffer.dtype)));
    const i64 bytes = m->space * size_of(m->dtype);
    switch (plan.place) {
      case Place::External:
        if (buffer.kind == BufferKind::Input) {
          m->data = std::get<runtime::Tensor>(inputs_.at(buffer.source)).data;
        } else {
          const Constant& constant = program_.constants.at(buffer.source);
          constants_.push_back(
              seeded_storage(buffer.dtype, program_.storages.at(constant.storage).seed, m->space));
          m->data = const_cast<std::byte*>(constants_.back().data);
        }
        break;
      case Place::Arena:
      case Place::Within:
        if (bytes > static_cast<i64>(slots_.at(plan.slot).size()))
          return error("%{} has {} bytes in slot {} of {}", buffer.name, bytes, plan.slot,
                       slots_[plan.slot].size());
        m->data = slots_[plan.slot].data();
        break;
      case Place::Output:
      case Place::Derived:
      case Place::Heap:
        COIL_TRY(interp::allocate(*m));
        std::fill_n(m->data, bytes, std::byte{static_cast<u8>(is_bool(m->dtype) ? 1 : 0xff)});
        break;
      case Place::Gone:
      case Place::Kept: return Ok{};
    }
    memory_[b] = m;
    return Ok{};
  }

  Result<interp::MemoryRef> memory(BufferId b) {
    if (!memory_.get(b)) COIL_TRY(place(b));
    if (!memory_.get(b)) return error("%{} is used, and has no memory", program_.buffers[b].name);
    return memory_.get(b);
  }

  Status step(u32 at) {
    const StepBuffers used = buffers_of(program_, schedule_, schedule_.order[at]);
    for (BufferId b : program_.buffers.ids()) {
      const BufferPlan& plan = schedule_.buffers.get(b);
      if (plan.place == Place::Arena && plan.first == at &&
          program_.buffers[b].kind == BufferKind::Temp)
        std::ranges::fill(
            slots_[plan.slot],
            std::byte{static_cast<u8>(is_bool(program_.buffers[b].dtype) ? 1 : 0xff)});
    }
    for (BufferId b : used.writes) {
      const BufferId base = program_.buffers[b].starts;
      if (base.valid() && schedule_.buffers.get(b).place != Place::Within)
        interp::copy_memory(*COIL_TRY(memory(base)), *COIL_TRY(memory(b)));
    }
    if (const auto* g = std::get_if<GroupId>(&schedule_.order[at])) {
      const StructuredId node = schedule_.groups[*g].node;
      if (node.valid())
        COIL_TRY(epilogue(*g, program_.structured[node]));
      else
        COIL_TRY(kernel(*g));
    } else if (const auto* node = std::get_if<StructuredId>(&schedule_.order[at])) {
      const Structured& s = program_.structured[*node];
      COIL_TRY(write(s, *COIL_TRY(result_of(s))));
    } else {
      return error("sub-programs do not run here");
    }
    for (const ProgramSize& s : program_.sizes)
      if (s.from.valid() && std::ranges::find(used.writes, s.from) != used.writes.end()) {
        const interp::MemoryRef m = COIL_TRY(memory(s.from));
        env_.values[s.var] = ops::read_element(DType::i64, m->data, m->offset).i;
      }
    poison_the_dead(at);
    return Ok{};
  }

  void poison_the_dead(u32 at) {
    std::vector<bool> lives(slots_.size(), false);
    for (BufferId b : program_.buffers.ids()) {
      const BufferPlan& plan = schedule_.buffers.get(b);
      if ((plan.place == Place::Arena || plan.place == Place::Within) && plan.first <= at &&
          plan.last > at)
        lives[plan.slot] = true;
    }
    for (std::size_t s = 0; s < slots_.size(); ++s)
      if (!lives[s]) std::ranges::fill(slots_[s], std::byte{0xff});
  }

  // ---- nodes ----

  Result<interp::MemoryRef> result_of(const Structured& node) {
    interp::Frame frame(program_, false, env_);
    for (const Access& a : node.inputs) frame.set(a.buffer, COIL_TRY(memory(a.buffer)));
    COIL_TRY(interp::run_structured(frame, node));
    return frame.read(node.outputs[0].buffer);
  }

  Status write(const Structured& node, const Memory& result) {
    interp::copy_memory(result, *COIL_TRY(memory(node.outputs[0].buffer)));
    return Ok{};
  }

  // ---- kernels ----

  /// Checked, and as its text says it.
  Result<Kernel> as_text(const Kernel& kernel) {
    if (const Status s = verify(kernel); !s.ok())
      return in_context("kernel:\n" + to_text(kernel), s.error());
    const std::string text = to_text(kernel);
    Kernel again = COIL_TRY(parse_kernel(text, kernel.name));
    if (const Status s = verify(again); !s.ok())
      return in_context("parsed kernel:\n" + text, s.error());
    again.from = kernel.from;
    again.mapping.reasons = kernel.mapping.reasons;
    if (to_text(again) != text)
      return error("the text of a kernel changes:\n{}\n{}", text, to_text(again));
    return again;
  }

  void note(const Kernel& kernel) {
    i64 loops = 0;
    for (const Stage& s : kernel.stages) {
      loops += !s.loop.empty();
      for (const KernelInst& i : s.insts) {
        if (i.kind == KernelOp::Accumulate)
          ++out_.counts[i.inst.tree.lanes > 1 ? "tree of many lanes" : "tree of one lane"];
        if (i.kind == KernelOp::Index) ++out_.counts["checked index"];
        if (i.kind == KernelOp::Scan) ++out_.counts["scan"];
        if (i.kind == KernelOp::Load && i.inst.mask.valid()) ++out_.counts["masked load"];
      }
    }
    if (loops > 1) ++out_.counts["row of several stages"];
    for (const KernelBuffer& b : kernel.buffers)
      if (b.kept) ++out_.counts["kept row"];
  }

  /// What one of a kernel's launches takes: its buffers have the names of the whole kernel's, or of
  /// scratch.
  Result<kernel_eval::Launch> launch_of(
      const BuiltKernel& built, const Kernel& kernel,
      const std::map<std::string, kernel_eval::Argument>& scratch) {
    kernel_eval::Launch launch;
    for (const KernelBuffer& b : kernel.buffers) {
      if (b.kept) continue;
      if (const auto at = scratch.find(b.name); at != scratch.end()) {
        launch.buffers.push_back(at->second);
        continue;
      }
      const auto whole = std::ranges::find(built.kernel.buffers, b.name, &KernelBuffer::name);
      const interp::MemoryRef m = COIL_TRY(memory(
          built.arguments.at(static_cast<std::size_t>(whole - built.kernel.buffers.begin()))));
      launch.buffers.push_back({m->data, m->space});
    }
    for (sym::Expr s : kernel.symbols) launch.symbols.push_back(env_.eval(s).value_or(0));
    return launch;
  }

  Result<kernel_eval::Launch> launch_of(const BuiltKernel& built) {
    kernel_eval::Launch launch;
    for (std::size_t i = 0; i < built.arguments.size(); ++i) {
      if (built.kernel.buffers[i].kept) continue;
      if (!built.arguments[i].valid()) {
        launch.buffers.push_back({});
        continue;
      }
      const interp::MemoryRef m = COIL_TRY(memory(built.arguments[i]));
      launch.buffers.push_back({m->data, m->space});
    }
    for (sym::Expr s : built.kernel.symbols) launch.symbols.push_back(env_.eval(s).value_or(0));
    return launch;
  }

  Status run_kernel(const Kernel& kernel, const kernel_eval::Launch& launch) {
    const Status s = kernel_eval::run(kernel, launch, random_);
    return s.ok() ? s : Status(in_context("kernel:\n" + to_text(kernel), s.error()));
  }

  /// As compiled programs run it, or split wherever that is possible.
  Status kernel(GroupId group) {
    const BuiltKernel built = build_kernel(program_, schedule_, group);
    if (const Status s = verify(built.kernel); !s.ok())
      return in_context("kernel:\n" + to_text(built.kernel), s.error());
    const bool split = random_() % 2;
    const CpuTuning tuning =
        split ? CpuTuning{.few_units = sym::kMaxInt, .least_blocks = 1, .scan_block = 4}
              : CpuTuning{};
    const Launches all = launches_on_cpu(built.kernel, Machine{}, tuning);
    note(built.kernel);
    if (built.kernel.closes()) ++out_.counts["closing launch"];
    if (!all.scratch.empty()) ++out_.counts["rows split over threads"];
    std::map<std::string, kernel_eval::Argument> scratch;
    std::vector<std::vector<std::byte>> bytes;
    for (const KernelBuffer& b : all.scratch) {
      i64 elements = 1;
      for (sym::Expr e : b.shape) elements *= env_.at(e);
      bytes.emplace_back(static_cast<std::size_t>(elements * size_of(b.dtype)),
                         std::byte{static_cast<u8>(is_bool(b.dtype) ? 1 : 0xff)});
      scratch[b.name] = {bytes.back().data(), elements};
    }
    for (const Kernel& launch : all.launches) {
      const Kernel parsed = COIL_TRY(as_text(launch));
      COIL_TRY(
          run_kernel(random_() % 2 ? parsed : launch, COIL_TRY(launch_of(built, launch, scratch))));
    }
    return Ok{};
  }

  // ---- epilogues ----

  /// A node's result as rows and columns of blocks, in the dtype of its accumulator.
  struct Whole {
    i64 batches = 1, rows = 1, cols = 1;
    std::vector<std::byte> elements;
  };

  Whole whole_of(const Structured& node, const Block& block, const Memory& result) const {
    Whole out;
    const std::size_t columns = column_dims(node), rank = result.shape.size();
    for (std::size_t d = 0; d < rank; ++d)
      (d >= rank - columns       ? out.cols
       : d == rank - columns - 1 ? out.rows
                                 : out.batches) *= result.shape[d];
    const std::vector<std::byte> rounded = dense(result);
    out.elements.resize(static_cast<std::size_t>(result.numel() * size_of(block.dtype)));
    interp::convert(result.dtype, block.dtype, result.numel(), rounded.data(), out.elements.data());
    return out;
  }

  std::vector<i64> cuts(i64 extent) {
    std::vector<i64> out = {0};
    while (out.back() < extent)
      out.push_back(std::min(extent, out.back() + 1 + static_cast<i64>(random_() % 20)));
    return out;
  }

  Status epilogue(GroupId group, const Structured& node) {
    BuiltKernel built = build_kernel(program_, schedule_, group);
    map_epilogue_to_cpu(built.kernel);
    note(built.kernel);
    ++out_.counts["epilogue"];
    const Kernel parsed = COIL_TRY(as_text(built.kernel));
    const interp::MemoryRef result = COIL_TRY(result_of(node));
    const Whole whole = whole_of(node, built.block, *result);
    std::vector<std::array<i64, 5>> blocks;  // batch, row0, rows, col0, cols
    for (i64 b = 0; b < whole.batches; ++b) {
      const std::vector<i64> rows = cuts(whole.rows), cols = cuts(whole.cols);
      for (std::size_t r = 1; r < rows.size(); ++r)
        for (std::size_t c = 1; c < cols.size(); ++c)
          blocks.push_back(
              {b, rows[r - 1], rows[r] - rows[r - 1], cols[c - 1], cols[c] - cols[c - 1]});
    }
    std::ranges::shuffle(blocks, random_);
    for (const std::array<i64, 5>& b : blocks) COIL_TRY(run_block(built, parsed, whole, b));
    const Place place = schedule_.buffers.get(node.outputs[0].buffer).place;
    return place != Place::Gone ? write(node, *result) : Status(Ok{});
  }

  Status run_block(const BuiltKernel& built, const Kernel& parsed, const Whole& whole,
                   const std::array<i64, 5>& at) {
    const auto& [batch, row0, rows, col0, cols] = at;
    const i64 ld = cols + static_cast<i64>(random_() % 4), size = size_of(built.block.dtype);
    std::vector<std::byte> block(static_cast<std::size_t>(rows * ld * size), std::byte{0xff});
    for (i64 r = 0; r < rows; ++r)
      std::memcpy(
          block.data() + r * ld * size,
          whole.elements.data() + (((batch * whole.rows) + row0 + r) * whole.cols + col0) * size,
          static_cast<std::size_t>(cols * size));
    kernel_eval::Launch launch = COIL_TRY(launch_of(built));
    launch.buffers.at(0) = {block.data(), rows * ld};
    const std::pair<sym::Expr, i64> values[] = {
        {built.block.batch, batch}, {built.block.row0, row0}, {built.block.rows, rows},
        {built.block.col0, col0},   {built.block.cols, cols}, {built.block.ld, ld}};
    for (std::size_t s = 0; s < launch.symbols.size(); ++s)
      for (const auto& [symbol, value] : values)
        if (built.kernel.symbols[s] == symbol) launch.symbols[s] = value;
    return run_kernel(random_() % 2 ? parsed : built.kernel, launch);
  }

  const LoopProgram& program_;
  const Schedule& schedule_;
  interp::Env env_;
  std::vector<runtime::Value> inputs_;
  std::mt19937_64 random_;
  Ran out_;
  std::vector<std::vector<std::byte>> slots_;
  std::vector<Storage> constants_;
  Side<BufferId, interp::MemoryRef> memory_;
};

}  // namespace

std::vector<std::byte> dense(const runtime::Tensor& tensor) {
  const runtime::Tensor whole = *tensor.contiguous();
  return {whole.data, whole.data + whole.bytes()};
}

Result<Ran> run(const LoopProgram& program, const Schedule& schedule,
                const std::vector<runtime::Value>& inputs, const interp::Env& env, u64 seed) {
  return Runner(program, schedule, env, seed).run(inputs);
}

}  // namespace coil::schedule_run
