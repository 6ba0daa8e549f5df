# libtorch, linked by hand from the Python that has torch: find_package(Torch) wants a CUDA toolkit beside a CUDA wheel.
# Gives the interface target orrery_torch.
set(ORRERY_PYTHON "$ENV{ORRERY_PYTHON}" CACHE FILEPATH "The Python whose torch is used")
if(NOT ORRERY_PYTHON)
  if(EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python)
    set(ORRERY_PYTHON ${CMAKE_SOURCE_DIR}/.venv/bin/python CACHE FILEPATH "" FORCE)
  else()
    message(FATAL_ERROR "No Python with torch: run scripts/setup, or set ORRERY_PYTHON to a Python that has torch 2.11 to 2.14")
  endif()
endif()

execute_process(
  COMMAND ${ORRERY_PYTHON} -c "import importlib.util, os; print(os.path.dirname(importlib.util.find_spec('torch').origin))"
  OUTPUT_VARIABLE ORRERY_TORCH_DIR OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
if(failed)
  message(FATAL_ERROR "${ORRERY_PYTHON} has no torch: install torch 2.11 to 2.14 there, or run scripts/setup")
endif()
file(STRINGS ${ORRERY_TORCH_DIR}/version.py version REGEX "^__version__")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" ORRERY_TORCH_VERSION "${version}")
if(ORRERY_TORCH_VERSION VERSION_LESS 2.11 OR NOT ORRERY_TORCH_VERSION VERSION_LESS 2.15)
  message(FATAL_ERROR "torch ${ORRERY_TORCH_VERSION} in ${ORRERY_TORCH_DIR}: orrery is built with 2.11 to 2.14")
endif()
message(STATUS "torch ${ORRERY_TORCH_VERSION} in ${ORRERY_TORCH_DIR}")

find_package(OpenMP REQUIRED COMPONENTS CXX)
add_library(orrery_torch INTERFACE)
target_include_directories(orrery_torch SYSTEM INTERFACE ${ORRERY_TORCH_DIR}/include
                           ${ORRERY_TORCH_DIR}/include/torch/csrc/api/include)
target_compile_definitions(orrery_torch INTERFACE AT_PER_OPERATOR_HEADERS)
# Without -fopenmp at::parallel_for is silently serial.
target_compile_options(orrery_torch INTERFACE -fopenmp)
target_link_directories(orrery_torch INTERFACE ${ORRERY_TORCH_DIR}/lib)
target_link_options(orrery_torch INTERFACE -fopenmp "LINKER:-rpath,${ORRERY_TORCH_DIR}/lib")
target_link_libraries(orrery_torch INTERFACE torch_cpu c10)
