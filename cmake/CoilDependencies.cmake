# Outside libraries, as one interface target: coil_dependencies. A missing one is an error that names
# its Debian package.

function(coil_require_header variable header package)
  find_path(${variable} ${header})
  if(NOT ${variable})
    message(FATAL_ERROR "${header} not found: install ${package} (scripts/setup.sh does it)")
  endif()
endfunction()

function(coil_require_library variable names package)
  find_library(${variable} NAMES ${names})
  if(NOT ${variable})
    message(FATAL_ERROR "library ${names} not found: install ${package} (scripts/setup.sh does it)")
  endif()
endfunction()

coil_require_header(COIL_FMT_INCLUDE fmt/core.h libfmt-dev)
coil_require_header(COIL_JSON_INCLUDE nlohmann/json.hpp nlohmann-json3-dev)
coil_require_header(COIL_CLI_INCLUDE CLI/CLI.hpp libcli11-dev)
coil_require_header(COIL_MINIZIP_INCLUDE minizip/unzip.h libminizip-dev)
coil_require_header(COIL_ZLIB_INCLUDE zlib.h zlib1g-dev)
if(COIL_PORTABLE)
  coil_require_library(COIL_MINIZIP_LIBRARY libminizip.a libminizip-dev)
  coil_require_library(COIL_ZLIB_LIBRARY libz.a zlib1g-dev)
  add_link_options(-static-libstdc++ -static-libgcc)
else()
  coil_require_library(COIL_MINIZIP_LIBRARY minizip libminizip-dev)
  coil_require_library(COIL_ZLIB_LIBRARY z zlib1g-dev)
endif()
find_package(Threads REQUIRED)

add_library(coil_dependencies INTERFACE)
target_include_directories(coil_dependencies SYSTEM INTERFACE
  ${COIL_FMT_INCLUDE} ${COIL_JSON_INCLUDE} ${COIL_CLI_INCLUDE}
  ${COIL_MINIZIP_INCLUDE} ${COIL_ZLIB_INCLUDE})
target_link_libraries(coil_dependencies INTERFACE
  ${COIL_MINIZIP_LIBRARY} ${COIL_ZLIB_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS})
