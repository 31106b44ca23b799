# penstock_compiler_cache(OUT ROOT): sets OUT to what a compiler is started with, so that one compiler cache serves every
# clone and build folder, whether a script, pip or a person builds. It stays empty where there is no ccache.
function(penstock_compiler_cache out root)
  set(${out} "" PARENT_SCOPE)
  find_program(CCACHE_PROGRAM ccache)
  if(CCACHE_PROGRAM)
    # Without a locale, as in containers, Python sets LC_CTYPE for what it starts. The cache would tell those objects from
    # all others.
    set(${out} env -u LC_CTYPE "CCACHE_BASEDIR=${root}" CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
               "${CCACHE_PROGRAM}" PARENT_SCOPE)
  endif()
endfunction()
