// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "seams/system_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temporary_tree.hpp"

namespace artune {
namespace {

TEST(SystemFiles, TextDropsTrailingSpace) {
  const TemporaryTree tree;
  tree.write("/proc/a", "one two \n\n");
  tree.write("/proc/empty", "");
  EXPECT_EQ(tree.files().text("/proc/a"), "one two");
  EXPECT_EQ(tree.files().text("/proc/empty"), "");
  EXPECT_EQ(tree.files().text("/proc/none"), std::nullopt);
}

TEST(SystemFiles, AFolderIsNoText) {
  const TemporaryTree tree;
  tree.write("/proc/a", "x");
  EXPECT_EQ(tree.files().text("/proc"), std::nullopt);
}

TEST(SystemFiles, BytesAreCutAndMayBeFewer) {
  const TemporaryTree tree;
  tree.write("/sys/config", std::string("a\0b", 3));
  EXPECT_EQ(tree.files().bytes("/sys/config", 2), std::string("a\0", 2));
  EXPECT_EQ(tree.files().bytes("/sys/config", 4096)->size(), 3U);
}

TEST(SystemFiles, ListsSortedNames) {
  const TemporaryTree tree;
  tree.write("/sys/d/b", "");
  tree.write("/sys/d/a", "");
  EXPECT_THAT(tree.files().list("/sys/d"), testing::ElementsAre("a", "b"));
  EXPECT_THAT(tree.files().list("/sys/none"), testing::IsEmpty());
}

TEST(SystemFiles, LinkNameIsTheLastPart) {
  const TemporaryTree tree;
  tree.link("/sys/dev/driver", "../../bus/pci/drivers/nouveau");
  EXPECT_EQ(tree.files().link_name("/sys/dev/driver"), "nouveau");
  EXPECT_EQ(tree.files().link_name("/sys/dev/none"), std::nullopt);
}

}  // namespace
}  // namespace artune
