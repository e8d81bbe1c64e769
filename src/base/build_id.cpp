#include "base/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <string_view>

#include "base/format.h"
#include "base/ids.h"

namespace coil {
namespace {

std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

/// The build id among the notes of one segment (System V ABI, "Note Section").
std::string id_in(std::string_view notes) {
  ElfW(Nhdr) note;
  while (notes.size() >= sizeof note) {
    std::memcpy(&note, notes.data(), sizeof note);
    const std::size_t name = padded(note.n_namesz), content = padded(note.n_descsz);
    if (name + content > notes.size() - sizeof note) return "";
    const std::string_view bytes = notes.substr(sizeof note + name, note.n_descsz);
    if (note.n_type == NT_GNU_BUILD_ID &&
        notes.substr(sizeof note, 4) == std::string_view("GNU", 4))
      return join(bytes, "", [](char c) { return str("{:02x}", static_cast<u8>(c)); });
    notes.remove_prefix(sizeof note + name + content);
  }
  return "";
}

/// For dl_iterate_phdr: takes the id of the module that this code belongs to, and ends there.
int take_id(dl_phdr_info* module, std::size_t, void* out) {
  const auto here = reinterpret_cast<ElfW(Addr)>(&take_id);
  bool is_ours = false;
  std::string id;
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = module->dlpi_phdr[i];
    const ElfW(Addr) start = module->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && here >= start && here - start < segment.p_memsz)
      is_ours = true;
    if (segment.p_type == PT_NOTE && id.empty())
      id = id_in({reinterpret_cast<const char*>(start), segment.p_memsz});
  }
  if (!is_ours) return 0;
  *static_cast<std::string*>(out) = id;
  return 1;
}

}  // namespace

std::string build_id() {
  std::string id;
  dl_iterate_phdr(take_id, &id);
  return id;
}

}  // namespace coil
