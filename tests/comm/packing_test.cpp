#include "orrery/comm/packing.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>

#include "orrery/base/error.h"

namespace orrery::comm {
namespace {

TEST(Packing, KeepsShapesTypesAndValuesOfAnyTensor) {
  const Tensor table = at::arange(35, at::kFloat).view({5, 7});
  const Message message = {table,
                           table.t(),
                           table.slice(1, 1, 7, 3).to(at::kBFloat16),
                           at::ones({3}, at::kBool),
                           at::ones({0, 4}, at::kDouble),
                           at::scalar_tensor(int64_t{1} << 62, at::kLong),
                           table.slice(0, 1, 5, 2)};
  const Extents extents = extents_of(message);
  const Tensor bytes = pack(message);
  EXPECT_EQ(bytes.numel(), packed_bytes(extents));
  EXPECT_EQ(bytes.numel(), 192 + 192 + 64 + 64 + 0 + 64 + 64);
  const Message copy = unpack(bytes, extents);
  ASSERT_EQ(copy.size(), message.size());
  for (size_t i = 0; i < copy.size(); ++i) {
    EXPECT_TRUE(at::equal(copy[i], message[i])) << i;
    EXPECT_EQ(copy[i].scalar_type(), message[i].scalar_type()) << i;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(copy[i].data_ptr()) % 64, 0u) << i;
  }
}

TEST(Packing, OfNothingIsNothing) {
  EXPECT_EQ(packed_bytes({}), 0);
  EXPECT_EQ(pack({}).numel(), 0);
  EXPECT_TRUE(unpack(pack({}), {}).empty());
}

TEST(Packing, RefusesTensorsThatAreNotOnTheCpu) {
  EXPECT_THROW(pack({at::ones({2}, at::TensorOptions(at::kMeta))}), Error);
}

}  // namespace
}  // namespace orrery::comm
