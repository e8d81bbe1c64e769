# coil_embed_prelude(TARGET FOLDER PATTERN NAMESPACE) embeds the files of a folder, in name order, as
# coil::NAMESPACE::prelude_files() (src/target/NAMESPACE/prelude_files.h).

function(coil_embed_prelude target folder pattern namespace)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/${pattern})
  list(SORT files)
  set(output ${CMAKE_BINARY_DIR}/generated/prelude_${namespace}.cpp)
  string(REPLACE ";" "|" joined "${files}")
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${joined}" -DOUTPUT=${output} -DNAMESPACE=${namespace}
            -P ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake
    COMMENT "Embedding the prelude of the ${namespace} target"
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
