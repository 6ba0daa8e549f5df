# ccache where it is installed. With a precompiled header it needs to be told that macros and times in it are harmless.
find_program(ORRERY_CCACHE ccache)
if(ORRERY_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${ORRERY_CCACHE})
endif()
