#include "tests/ops/row_invariance.h"

namespace orrery::testing {
namespace {

class ManyRowInvariance : public ::testing::TestWithParam<InvariantOp> {};

TEST_P(ManyRowInvariance, HoldsForRandomSlicesAndThreads) { expect_row_invariant(GetParam(), 300, 2); }

INSTANTIATE_TEST_SUITE_P(Table, ManyRowInvariance, ::testing::ValuesIn(invariant_ops()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace orrery::testing
