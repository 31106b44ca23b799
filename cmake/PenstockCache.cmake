# penstock_compiler_cache(OUT ROOT COMPILER): sets OUT to what COMPILER is started with, so that one compiler cache serves
# every clone and build folder, whether a script, pip or a person builds. It stays empty where there is no ccache.
function(penstock_compiler_cache out root compiler)
  set(${out} "" PARENT_SCOPE)
  find_program(CCACHE_PROGRAM ccache)
  if(CCACHE_PROGRAM)
    # The cache tells compilers apart by their names too, and g++ has several: a person's CXX, CMake's c++, and what
    # Python says that it was built with. (clang++ is a link to clang, which does otherwise by that name.)
    set(one_name "")
    file(REAL_PATH "${compiler}" real)
    if(real MATCHES "[/-]g\\+\\+(-[0-9.]+)?$")
      set(one_name "CCACHE_COMPILER=${real}")
    endif()
    # Without a locale, as in containers, Python sets LC_CTYPE for what it starts. The cache would tell those objects from
    # all others.
    set(${out} env -u LC_CTYPE "CCACHE_BASEDIR=${root}" CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
               ${one_name} "${CCACHE_PROGRAM}" PARENT_SCOPE)
  endif()
endfunction()
