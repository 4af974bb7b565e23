// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "tune/weights.hpp"

#include <gmock/gmock.h>

namespace artune {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;

auto near(double value) { return DoubleNear(value, 1e-12); }

TEST(Weights, UniformOverTheLogOfSize) {
  EXPECT_THAT(size_weights({1024, 2048, 4096, 8192}, {}), ElementsAre(near(.25), near(.25), near(.25), near(.25)));
  // 1K..2K one octave, 2K..8K two: 1, 1.5 and 2 octaves.
  EXPECT_THAT(size_weights({1024, 2048, 8192}, {}), ElementsAre(near(1 / 4.5), near(1.5 / 4.5), near(2 / 4.5)));
  EXPECT_THAT(size_weights({777}, {}), ElementsAre(near(1)));
  EXPECT_THAT(size_weights({}, {}), IsEmpty());
}

TEST(Weights, GivenOnesCountAtTheNearestSize) {
  EXPECT_THAT(size_weights({1024, 4096}, {{1000, 3}, {1999, 3}, {2100, 1}, {1 << 20, 1}}), ElementsAre(near(.75), near(.25)));
  EXPECT_THAT(size_weights({1024, 4096}, {{0, 1}}), ElementsAre(near(1), near(0)));
  EXPECT_THAT(size_weights({1024, 4096}, {{1024, 0}}), ElementsAre(near(.5), near(.5))) << "nothing given: uniform";
}

}  // namespace
}  // namespace artune
