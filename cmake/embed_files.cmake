# cmake -DFILES="a.h|b.h" -DOUTPUT=x.cpp -DNAMESPACE=cpp -P embed_files.cmake
# Writes a C++ source that holds the bytes of the files.

string(REPLACE "|" ";" files "${FILES}")
list(LENGTH files count)
set(rows "")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME)
  file(READ ${file} hex HEX)
  file(SIZE ${file} size)
  # 32 bytes a line, each as \xNN. An escape ends at the quote or the next backslash.
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${hex}")
  string(REPEAT "\\\\x[0-9a-f][0-9a-f]" 32 line)
  string(REGEX REPLACE "(${line})" "\\1\"\n     \"" bytes "${bytes}")
  string(APPEND rows "    {\"${name}\",\n     {\"${bytes}\", ${size}}},\n")
endforeach()
file(WRITE ${OUTPUT} "// Made by cmake/embed_files.cmake.
#include \"target/${NAMESPACE}/prelude_files.h\"

#include <array>

namespace coil::${NAMESPACE} {
namespace {

constexpr std::array<PreludeFile, ${count}> kFiles = {{
${rows}}};

}  // namespace

std::span<const PreludeFile> prelude_files() { return kFiles; }

}  // namespace coil::${NAMESPACE}
")
