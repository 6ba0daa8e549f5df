#include "tests/ops/row_invariance.h"

namespace orrery::testing {
namespace {

class RowInvariance : public ::testing::TestWithParam<InvariantOp> {};

TEST_P(RowInvariance, HoldsForRandomSlicesAndThreads) { expect_row_invariant(GetParam(), 12, 1); }

INSTANTIATE_TEST_SUITE_P(Table, RowInvariance, ::testing::ValuesIn(invariant_ops()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace orrery::testing
