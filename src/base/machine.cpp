#include "base/machine.h"

#include <sched.h>
#include <unistd.h>

namespace coil {

std::string_view name(Isa isa) {
  switch (isa) {
    case Isa::Plain: return "plain";
    case Isa::Avx2: return "avx2";
    case Isa::Avx512: return "avx512";
    case Isa::Neon: return "neon";
  }
  COIL_UNREACHABLE();
}

namespace {

bool host_has(Isa isa) {
  switch (isa) {
    case Isa::Plain: return true;
#if defined(__x86_64__)
    case Isa::Avx2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::Avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("fma");
    case Isa::Neon: return false;
#elif defined(__aarch64__)
    case Isa::Avx2:
    case Isa::Avx512: return false;
    case Isa::Neon: return true;
#else
    case Isa::Avx2:
    case Isa::Avx512:
    case Isa::Neon: return false;
#endif
  }
  COIL_UNREACHABLE();
}

}  // namespace

Machine Machine::host() {
  Machine m;
  for (Isa isa : {Isa::Avx2, Isa::Avx512, Isa::Neon})
    if (host_has(isa)) m.isa = isa;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) m.cores = CPU_COUNT(&allowed);
  if (long bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE); bytes > 0) m.l1d_bytes = bytes;
  if (long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) m.l2_bytes = bytes;
  return m;
}

Result<Machine> Machine::with_isa(std::string_view option) {
  Machine m = host();
  if (option == "native") return m;
  for (Isa isa : {Isa::Plain, Isa::Avx2, Isa::Avx512, Isa::Neon}) {
    if (name(isa) != option) continue;
    if (!host_has(isa))
      return error("this processor has no {}; it has {} (-O isa={})", option, name(m.isa),
                   name(m.isa));
    m.isa = isa;
    return m;
  }
  return error("unknown instruction set '{}'", option);
}

}  // namespace coil
