# cmake -DCOMPILER= -DPROJECT= -DEMBEDDER= -DWORK= -P check_embedded_flags.cmake
# Flags of a project that holds PROJECT reach our headers, which stand them, and are undone for our sources. A source of
# each is compiled.

file(REMOVE_RECURSE "${WORK}")
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${EMBEDDER}" -B "${WORK}" -G Ninja "-DPENSTOCK=${PROJECT}" -DSTRICT=ON
                        "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON -DPENSTOCK_UNITY=OFF
                RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT result)
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${WORK}" --target
                          penstock/src/CMakeFiles/penstock_core.dir/core/shape.cpp.o CMakeFiles/program.dir/program.cpp.o
                          CMakeFiles/embedder.dir/main.cpp.o
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
endif()
if(result)
  message(FATAL_ERROR "Penstock cannot be built inside of a project with strict warnings:\n${output}")
endif()
file(STRINGS "${WORK}/build.ninja" flags REGEX "^  FLAGS = .*-ffast-math.*-fno-fast-math")
if(NOT flags)
  message(FATAL_ERROR "-ffast-math of the project that holds it reaches our sources")
endif()
