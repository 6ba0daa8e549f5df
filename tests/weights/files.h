#pragma once
// Files with a given content, and errors as tests want to see them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "orrery/base/error.h"
#include "tests/support/temp_dir.h"

namespace orrery::testing {

namespace fs = std::filesystem;

/// Writes the file and returns its path.
inline std::string write(const TempDir& folder, const std::string& name, std::string_view content) {
  std::ofstream(folder / name, std::ios::binary) << content;
  return folder / name;
}

/// The Error that `act` throws; the test fails if it throws none.
template <class F>
Error error_of(const F& act) {
  try {
    act();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "expected an Error, found none";
  return Error(ErrorKind::kInternal, "no error", "none");
}

template <class F>
std::string code_of(const F& act) {
  return error_of(act).code();
}

}  // namespace orrery::testing
