# Embeds the files of a folder, in name order, as coil::cpp::prelude_files()
# (src/target/cpp/prelude_files.h).

function(coil_embed_prelude target folder)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*.h)
  list(SORT files)
  set(output ${CMAKE_BINARY_DIR}/generated/prelude_text.cpp)
  string(REPLACE ";" "|" joined "${files}")
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${joined}" -DOUTPUT=${output}
            -P ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake
    COMMENT "Embedding the prelude of the cpp target"
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
