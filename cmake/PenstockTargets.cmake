# What every target of ours has in common.

include(CheckCXXSourceCompiles)
include(PenstockCache)

# Without a choice compilers do not optimise, which makes some of it 30 times slower. This holds in our folders alone:
# the rest of another project, which has made no choice either, stays as it is.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  if(NOT PROJECT_IS_TOP_LEVEL)
    message(STATUS "Penstock is built as Release, since CMAKE_BUILD_TYPE is not set")
  endif()
  set(CMAKE_BUILD_TYPE Release)
endif()
# In another project's build these are that project's to choose.
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
  if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
    penstock_compiler_cache(CMAKE_CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}" "${CMAKE_CXX_COMPILER}")
  endif()
endif()
if(BUILD_SHARED_LIBS)
  message(STATUS "Penstock is a static library whatever BUILD_SHARED_LIBS says; it can be linked into shared ones")
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)

add_library(penstock_options INTERFACE)
target_compile_definitions(penstock_options INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
# Namespaces of our own for libraries of templates. Their functions are weak symbols of every object, of which the linker
# keeps one: a program with another version of such a library would get ours, or we its.
target_compile_definitions(penstock_options INTERFACE fmt=penstock_fmt nlohmann=penstock_nlohmann)
# Values do not depend on the processor. GCC would round a product and a sum once wherever a processor can, which that of
# 64-bit ARM and those of -march=x86-64-v3 can.
check_cxx_source_compiles("#if !defined(__ARM_FEATURE_FMA) && !defined(__FMA__)
#error
#endif
int main() {}" PENSTOCK_HAS_FMA)
if(PENSTOCK_HAS_FMA)
  target_compile_options(penstock_options INTERFACE -ffp-contract=off)
endif()
if(PENSTOCK_WARNINGS)
  target_compile_options(penstock_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
  # Errors only by the compilers that every change is built with: a newer one's new warnings must not keep anybody from
  # building what is there.
  target_compile_options(penstock_options INTERFACE
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Werror>
    $<$<AND:$<CXX_COMPILER_ID:Clang>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,15>>:-Werror>)
  # GCC 12 warns at -O3 of what the standard library itself does: overlap in std::string's operator+ (GCC bug 105651),
  # and vectors of constant content as if they were not on the heap.
  target_compile_options(penstock_options INTERFACE
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-free-nonheap-object>)
endif()
if(PENSTOCK_SANITIZE)
  # In the flags and not in the options, so that a target's own level (that of tests) comes behind it.
  string(APPEND CMAKE_CXX_FLAGS_DEBUG " -O1 -g1")
  target_compile_options(penstock_options INTERFACE -fsanitize=${PENSTOCK_SANITIZE} -fno-omit-frame-pointer
                                                    -fno-sanitize-recover=all)
  # Functions of libraries that are opened at run time are declared with types of our own.
  target_compile_options(penstock_options INTERFACE $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
  # As GCC says itself, so that sources ask in one way.
  foreach(sanitizer IN ITEMS address thread)
    if(PENSTOCK_SANITIZE MATCHES "${sanitizer}")
      string(TOUPPER "__sanitize_${sanitizer}__" macro)
      target_compile_definitions(penstock_options INTERFACE $<$<CXX_COMPILER_ID:Clang>:${macro}=1>)
    endif()
  endforeach()
  target_link_options(penstock_options INTERFACE -fsanitize=${PENSTOCK_SANITIZE})
endif()

if(PENSTOCK_TIDY)
  find_program(CLANG_TIDY_PROGRAM NAMES clang-tidy-14 REQUIRED)
endif()

# Our own code, as opposed to its tests: checked by clang-tidy in the lint preset. Flags of a project that holds ours come
# before these: its warnings are not for our sources, and what changes the values of floating-point numbers, or takes
# exceptions away, is not either.
function(penstock_own target)
  target_compile_options(${target} PRIVATE -fno-fast-math -fexceptions -frtti)
  if(NOT PROJECT_IS_TOP_LEVEL AND NOT PENSTOCK_WARNINGS)
    target_compile_options(${target} PRIVATE -w)
  endif()
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:penstock_options>)
  if(PENSTOCK_TIDY)
    get_target_property(sources ${target} SOURCES)
    set_source_files_properties(${sources} PROPERTIES OBJECT_DEPENDS "${PROJECT_SOURCE_DIR}/.clang-tidy")
    set_target_properties(${target} PROPERTIES CXX_CLANG_TIDY "${CLANG_TIDY_PROGRAM};--quiet;--warnings-as-errors=*")
  endif()
endfunction()

# penstock_precompile(TARGET FIRST HEADER...): the sources of TARGET find the standard library's headers, and HEADERs,
# parsed: a third of the time that they take to compile. FIRST is the target that this is done in, for all of the same
# flags; it comes first. For tests that are compiled one by one: joined sources parse them once anyway, and the library
# does without, so that it shows what a source forgets to include.
function(penstock_precompile target first)
  if(NOT PENSTOCK_PRECOMPILE OR PENSTOCK_UNITY)
    return()
  endif()
  # Of headers that were parsed before GCC forgets that they are the system's, and gives warnings of what they inline.
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>)
  if(NOT target STREQUAL first)
    target_precompile_headers(${target} REUSE_FROM ${first})
    return()
  endif()
  target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <bit> <charconv> <cmath> <condition_variable>
    <cstdint> <cstring> <exception> <filesystem> <functional> <limits> <map> <memory> <mutex> <optional> <set> <span>
    <stop_token> <string> <string_view> <system_error> <thread> <tuple> <unordered_map> <utility> <variant> <vector>
    ${ARGN})
endfunction()

# penstock_unity(TARGET [FILES]): the sources of each room (folder) are compiled as one, at most FILES (default 16) at a
# time: headers are parsed, and templates made, once a room and not once a source. Sources with options of their own stay
# alone. PENSTOCK_UNITY=OFF, as in the preset `dev`, compiles each source alone: a touched one is quicker built, and shows
# what it forgets to include.
function(penstock_unity target)
  if(NOT PENSTOCK_UNITY)
    return()
  endif()
  set(most 16)
  if(ARGC GREATER 1)
    set(most ${ARGV1})
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE room)
    cmake_path(GET room PARENT_PATH room)
    cmake_path(RELATIVE_PATH room BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
    string(MAKE_C_IDENTIFIER "${room}" room)
    list(APPEND rooms ${room})
    list(APPEND sources_of_${room} "${source}")
  endforeach()
  list(REMOVE_DUPLICATES rooms)
  foreach(room IN LISTS rooms)
    # Parts of equal size: 18 sources are twice 9.
    list(LENGTH sources_of_${room} count)
    math(EXPR parts "(${count} + ${most} - 1) / ${most}")
    set(at 0)
    foreach(source IN LISTS sources_of_${room})
      math(EXPR part "${at} * ${parts} / ${count}")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${room}_${part}")
      math(EXPR at "${at} + 1")
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC takes what a joined source defines for that of a header, which others would see.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# penstock_programs(GROUP PREFIX LIBRARY...): each *.cpp of this folder becomes the program PREFIX<stem>, linked with the
# libraries; the target GROUP builds them all.
function(penstock_programs group prefix)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  add_custom_target(${group})
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    add_executable(${prefix}${name} "${source}")
    target_link_libraries(${prefix}${name} PRIVATE ${ARGN} penstock_options)
    add_dependencies(${group} ${prefix}${name})
  endforeach()
endfunction()
