#pragma once
// Level 2: which bodies share a kernel, in which order things run, and why.

#include <string>
#include <variant>
#include <vector>

#include "base/options.h"
#include "loop/program.h"

namespace coil {

struct GroupTag;
using GroupId = Id<GroupTag>;

struct Axis {
  sym::Expr var;
  sym::Expr extent;
};

/// One body inside a group: each of its dims as an expression in the group's axes.
///
/// Even stages run once for each point of the grid, odd ones loop over the inner axes as well. A
/// body that reduces loops in `stage` and has its results, and what it computes from them, in
/// `stage + 1`.
struct Instance {
  BodyId body;
  std::vector<sym::Expr> dims;
  u32 stage = 0;
  bool is_row() const { return stage % 2 == 1; }
};

/// Share: may the two share a kernel? Recompute: is `from` computed again wherever it is read?
enum class Question : u8 { Share, Recompute };

/// What a decision function returned: yes with the saving, or no with the reason.
struct Decision {
  bool yes = false;
  std::string from, to;  // names of bodies, groups or nodes
  std::string reason;
  Question question = Question::Share;
};

/// Bodies that become one kernel. `grid` axes are parallel; `inner` ones are the row that loops of
/// its stages go over, in order: what the bodies reduce or scan. A group around a structured node
/// is its epilogue: the bodies run on each finished block of the node's result, and `grid` is the
/// node's output dims.
struct Group {
  std::string name;
  std::vector<Axis> grid;
  std::vector<Axis> inner;
  std::vector<Instance> instances;
  StructuredId node;  // or invalid
  /// Small groups without a grid that run once each, in order, when all points of the grid are
  /// done.
  std::vector<Group> closing;
  bool init = false;
};

/// Calls `f(const Instance&)` for all instances of a group, those of its closing groups last.
template <class F>
void for_each_instance(const Group& group, F f) {
  for (const Instance& i : group.instances) f(i);
  for (const Group& part : group.closing) for_each_instance(part, f);
}

using ScheduleStep = std::variant<GroupId, StructuredId, ControlId>;

/// Where the bytes of a buffer are.
enum class Place : u8 {
  External,  // an input, a constant, a state
  Arena,     // a slot of the call's arena
  Output,    // memory handed to the caller
  Derived,   // made by `init`, kept with the model
  Heap,      // its size is known only during the call
  Gone,      // lives inside one kernel: never stored
  Kept,      // one row of it at a time, in scratch of the kernel
  Within,    // takes over the memory of the buffer it starts as
};

struct BufferPlan {
  Place place = Place::Arena;
  u32 slot = 0;             // Arena: index into Schedule::slots
  u32 first = 0, last = 0;  // steps of its life
};

/// Arena memory that buffers with disjoint lives share.
struct Slot {
  sym::Expr bytes;
};

struct Schedule {
  Table<GroupId, Group> groups;
  /// Pointwise bodies that have no place of their own: each reader computes what it reads of the
  /// buffer.
  Side<BufferId, BodyId> recomputed;
  std::vector<ScheduleStep> order;
  std::vector<Decision> decisions;
  Side<BufferId, BufferPlan> buffers;
  std::vector<Slot> slots;
  std::vector<Schedule> subschedules;  // one for each LoopProgram::subprograms
};

/// Groups, order and memory of a program. A pure function of program and options.
Schedule schedule(const LoopProgram& program, const Options& options);
std::string to_text(const LoopProgram& program, const Schedule& schedule);

/// Bytes that a buffer occupies under its layout: from its first to its last element.
sym::Expr bytes_of(sym::Arena& syms, const Buffer& buffer);

}  // namespace coil
