// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "tune/print.hpp"

#include <gmock/gmock.h>

#include "profile/profile.hpp"

namespace artune {
namespace {

using testing::HasSubstr;
using testing::Not;

Profile example() { return *read_profile(std::string(ARTUNE_SOURCE_DIR) + "/profiles/examples/four-gpus.json"); }

TEST(ProfileTable, ReadsLikeATable) {
  EXPECT_EQ(profile_table(example()), R"(Profile for simulated-4x-nvidia-rtx-pro-6000-blackwell-pix-24433ec51a4d37b4
simulated: these figures come from a model of a machine, nothing was measured

all_reduce bf16, 4 ranks, graph, one-thread, idle
    from   below  use                geometry  numerics           µs  NCCL µs   gain
       1   92682  p2p/one-shot/ll    8x512     rank-order-fp32  7.70     14.7  1.91x
   92682  741456  p2p/one-shot/flag  32x512    rank-order-fp32  28.7     40.9  1.43x
  741456    open  nccl               ctas=32   nccl             85.2     85.2  1.00x
  NCCL_MIN_BYTES=741456  (nccl when bytes >= this)
  CE_MIN_BYTES=never
  ONESHOT_MAX_BYTES=741456  (p2p one-shot kernel when bytes < this, else nccl)
)");
}

TEST(ProfileTable, SaysWhatItIsNot) {
  Profile profile = example();
  profile.header.simulated = false;
  EXPECT_THAT(profile_table(profile), Not(HasSubstr("simulated:")));
  EXPECT_THAT(profile_table(profile), Not(HasSubstr("sharing")));
  profile.header.shared_gpu = true;
  EXPECT_THAT(profile_table(profile), HasSubstr("ranks sharing one GPU"));
}

TEST(ProfileTable, ShowsWhatIsMissingAndWhatIsLost) {
  Profile profile = example();
  profile.tables[0].ranges[0].nccl_us.reset();
  profile.tables[0].ranges[0].gain.reset();
  profile.tables[0].thresholds[0].regret_percent = 3.25;
  const std::string text = profile_table(profile);
  EXPECT_THAT(text, HasSubstr("rank-order-fp32  7.70        -      -"));
  EXPECT_THAT(text, HasSubstr("(nccl when bytes >= this)  loses 3.2 % against the ranges"));
}

}  // namespace
}  // namespace artune
