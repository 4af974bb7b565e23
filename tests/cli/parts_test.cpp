// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Parts of the command line that need no process of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "base/file.hpp"
#include "cli/exit_status.hpp"
#include "cli/gpu_lock.hpp"
#include "cli/group_facts.hpp"
#include "cli/suggestion.hpp"

namespace artune {
namespace {

using ::testing::HasSubstr;

TEST(ExitStatus, PageListsEveryReasonWithItsStatus) {
  const Result<std::string> page = read_file(std::string(ARTUNE_SOURCE_DIR) + "/docs/exit-status.md");
  ASSERT_TRUE(page) << page.error().message;
  std::map<std::string, int> listed;
  const std::regex row(R"(\| `([a-z-]+)` \| (\d+) \|)");
  for (std::sregex_iterator it(page->begin(), page->end(), row), end; it != end; ++it) listed[(*it)[1]] = std::stoi((*it)[2]);
  std::map<std::string, int> mapped;
  for (const ReasonRow& reason : kReasons) mapped[std::string(reason.word)] = reason.exit_status;
  EXPECT_EQ(listed, mapped);
}

TEST(ExitStatus, EveryReasonHasARowOfItsOwn) {
  for (int i = 0; i <= static_cast<int>(Reason::internal); ++i) EXPECT_EQ(static_cast<int>(row_of(static_cast<Reason>(i)).reason), i);
}

TEST(NearestWord, FindsTypos) {
  const std::vector<std::string> verbs{"probe", "sweep", "tune", "explain", "env", "version"};
  EXPECT_EQ(nearest_word("sweap", verbs), "sweep");
  EXPECT_EQ(nearest_word("tnue", verbs), "tune") << "a swap is one mistake";
  EXPECT_EQ(nearest_word("versoin", verbs), "version");
  EXPECT_EQ(nearest_word("xyzzy", verbs), "") << "a guess that far off helps nobody";
  EXPECT_EQ(nearest_word("", verbs), "");
}

TEST(NearestWord, BeginningBreaksTies) {
  EXPECT_EQ(nearest_word("--siez", {"--seed", "--sizes"}), "--sizes");
  EXPECT_EQ(nearest_word("--siez", {"--sizes", "--seed"}), "--sizes");
}

class GpuLockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/ar-tune-lock-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    for (int i = 0; i < 2; ++i) {
      GpuFacts gpu;
      gpu.index = i;
      gpu.name = "NVIDIA Test";
      gpu.pci_address = "0000:0" + std::to_string(i) + ":00.0";
      gpu.uuid_sha256 = "000000000000000" + std::to_string(i);
      gpus_.push_back(gpu);
    }
  }
  void TearDown() override {
    for (const GpuFacts& gpu : gpus_) ::unlink(lock_file(directory_, gpu).c_str());
    ::rmdir(directory_.c_str());
  }
  std::string directory_;
  std::vector<GpuFacts> gpus_;
};

TEST_F(GpuLockTest, SecondIsRefusedWithTheNameOfTheFirst) {
  const Result<GpuLock> first = GpuLock::take(gpus_, directory_);
  ASSERT_TRUE(first) << first.error().message;
  const Result<GpuLock> second = GpuLock::take({gpus_[1]}, directory_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason, Reason::busy_gpu);
  EXPECT_THAT(second.error().message, HasSubstr("GPU 1 (0000:01:00.0, NVIDIA Test)"));
  EXPECT_THAT(second.error().message, HasSubstr("process " + std::to_string(::getpid())));
}

TEST_F(GpuLockTest, IsFreeAfterItsEndAndTakenAllOrNone) {
  { ASSERT_TRUE(GpuLock::take(gpus_, directory_)); }
  const Result<GpuLock> one = GpuLock::take({gpus_[1]}, directory_);
  ASSERT_TRUE(one);
  EXPECT_FALSE(GpuLock::take(gpus_, directory_));
  EXPECT_TRUE(GpuLock::take({gpus_[0]}, directory_)) << "the refused one must not keep its first half";
}

TEST_F(GpuLockTest, EndsWithAProcessHoweverThatEnds) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Result<GpuLock> lock = GpuLock::take(gpus_, directory_);
    ::_exit(lock ? 0 : 1);  // without any destructor
  }
  int state = 0;
  ::waitpid(child, &state, 0);
  ASSERT_EQ(WEXITSTATUS(state), 0);
  EXPECT_TRUE(GpuLock::take(gpus_, directory_));
}

TEST_F(GpuLockTest, FolderThatCannotBeUsedIsSaid) {
  const Result<GpuLock> lock = GpuLock::take(gpus_, "/nonexistent");
  ASSERT_FALSE(lock);
  EXPECT_THAT(lock.error().message, HasSubstr("XDG_RUNTIME_DIR"));
}

TEST(RigPairClass, FollowsTheTree) {
  Rig rig;
  rig.sockets = {{"cpu0", 0, {}}, {"cpu1", 1, {}}};
  rig.root_ports = {{"rp0", "cpu0"}, {"rp1", "cpu0"}, {"rp2", "cpu1"}};
  rig.switches = {{"top"}, {"left"}, {"right"}};
  for (const char* id : {"g0", "g1", "g2", "g3", "g4"}) {
    RigGpu gpu;
    gpu.id = id;
    rig.gpus.push_back(gpu);
  }
  const auto link = [&](const char* from, const char* to) {
    RigLink one;
    one.from = from;
    one.to = to;
    rig.links.push_back(one);
  };
  link("rp0", "top");
  link("top", "left");
  link("right", "top");   // the direction in which a link is written says nothing
  link("left", "g0");
  link("g1", "left");
  link("right", "g2");
  link("rp1", "g3");
  link("rp2", "g4");
  EXPECT_EQ(rig_pair_class(rig, 0, 1), "pix");
  EXPECT_EQ(rig_pair_class(rig, 0, 2), "pxb");
  EXPECT_EQ(rig_pair_class(rig, 0, 3), "phb");
  EXPECT_EQ(rig_pair_class(rig, 3, 4), "sys");
  EXPECT_EQ(rig_pair_class(rig, 4, 3), "sys");
}

}  // namespace
}  // namespace artune
