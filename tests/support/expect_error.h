#pragma once
#include <gtest/gtest.h>

#include <string>

#include "orrery/base/error.h"

namespace orrery::testing {

/// The call throws an Error of this kind whose text holds `part`.
template <class Call>
void expect_error(ErrorKind kind, const std::string& part, Call call) {
  try {
    call();
    ADD_FAILURE() << "expected an error with '" << part << "'";
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.kind()), to_string(kind)) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
        << "expected '" << part << "' in: " << error.what();
  }
}

}  // namespace orrery::testing
