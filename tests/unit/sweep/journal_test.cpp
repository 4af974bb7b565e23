// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/journal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "fake_machine.hpp"
#include "sweep/engine.hpp"

namespace artune {
namespace {

using ::testing::HasSubstr;

class JournalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = (std::filesystem::temp_directory_path() / ("ar-tune-" + std::to_string(::getpid()) + "-" + test->name() + ".journal")).string();
  }
  void TearDown() override { std::filesystem::remove(path_); }

  static Plan plan() {
    PlanWords words;
    words.sizes = {"1K", "4K", "16K"};
    words.modes = {"graph"};
    return *make_plan(words, {});
  }

  Result<Sweep> sweep(bool resume, SweepHooks& hooks) {
    return run_sweep(machine_, plan_, hooks, {.journal_file = path_, .resume = resume, .clock = &clock_});
  }

  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(path_).rdbuf();
    return all.str();
  }
  void write(const std::string& all) const { std::ofstream(path_, std::ios::trunc) << all; }
  long lines() const {
    const std::string all = text();
    return std::count(all.begin(), all.end(), '\n');
  }

  std::string path_;
  FakeClock clock_;
  FakeMachine machine_{clock_};
  Plan plan_ = plan();
  SweepHooks hooks_;
};

/// Interrupts as soon as `shapes` are done.
struct StopAfter final : SweepHooks {
  explicit StopAfter(std::size_t count) : shapes(count) {}
  void progress(const Progress& progress) override { stop = progress.done >= shapes; }
  bool interrupted() override { return stop; }
  std::size_t shapes;
  bool stop = false;
};

TEST_F(JournalTest, ResumesWhereASweepWasInterrupted) {
  StopAfter stop(2);
  const auto part = sweep(false, stop);
  ASSERT_TRUE(part);
  EXPECT_FALSE(part->complete);
  EXPECT_EQ(lines(), 1 + 2);

  machine_.log.clear();
  const auto whole = sweep(true, hooks_);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_TRUE(whole->complete);
  for (const auto& request : machine_.log) EXPECT_EQ(request.shape.bytes, 16384u) << "a finished shape was measured again";
  ASSERT_FALSE(machine_.log.empty());
  EXPECT_EQ(whole->rows.front().samples_us, part->rows.front().samples_us);
  EXPECT_EQ(whole->rows.back().shape.bytes, 16384u);
  EXPECT_GT(whole->noise_floor_percent, 0);
  EXPECT_EQ(lines(), 1 + 3);
}

TEST_F(JournalTest, ALineCutShortIsMeasuredAgain) {
  ASSERT_TRUE(sweep(false, hooks_));
  const std::string all = text();
  write(all.substr(0, all.size() - 40));
  machine_.log.clear();
  const auto whole = sweep(true, hooks_);
  ASSERT_TRUE(whole) << whole.error().message;
  for (const auto& request : machine_.log) EXPECT_EQ(request.shape.bytes, 16384u);
  EXPECT_TRUE(whole->complete);
  machine_.log.clear();
  ASSERT_TRUE(sweep(true, hooks_));  // the half line was cut off before the new one was written
  EXPECT_TRUE(machine_.log.empty());
}

TEST_F(JournalTest, RemembersWhatMustNotBeTriedAgain) {
  machine_.faults = {{"host/one-shot/flag", 1024, FakeMachine::Step::verify, OutcomeKind::crash, 1}};
  StopAfter stop(1);
  ASSERT_TRUE(sweep(false, stop));
  machine_.log.clear();
  const auto whole = sweep(true, hooks_);
  ASSERT_TRUE(whole);
  for (const auto& request : machine_.log) EXPECT_NE(request.candidate.name, "host/one-shot/flag");
}

TEST_F(JournalTest, RefusesAnotherPlanOrMachine) {
  ASSERT_TRUE(sweep(false, hooks_));
  const auto refusal = [&] {
    const auto resumed = sweep(true, hooks_);
    if (resumed) return std::string("accepted");
    EXPECT_EQ(resumed.error().reason, Reason::unreadable_input);
    return resumed.error().message;
  };
  plan_.seed = 9;
  EXPECT_THAT(refusal(), HasSubstr("plan.seed differs"));
  plan_ = plan();
  machine_.header.machine.driver = "590.2";
  EXPECT_THAT(refusal(), HasSubstr("machine.driver differs"));
  machine_.header = FakeMachine::default_header();
  machine_.header.machine.gpus[0].link_now = {.generation = 1, .width = 8};  // an idle link trains down: no difference
  EXPECT_TRUE(sweep(true, hooks_));
}

TEST_F(JournalTest, RefusesWhatIsNoJournal) {
  for (const char* content : {"", "{\"kind\":\"ar-tune/sweep\"}\n", "hello\n", "[]\n", "{}\n", "{\"kind\": 3}\n"}) {
    write(content);
    const auto resumed = sweep(true, hooks_);
    ASSERT_FALSE(resumed) << content;
    EXPECT_EQ(resumed.error().reason, Reason::unreadable_input);
    EXPECT_THAT(resumed.error().message, HasSubstr(path_));
  }
  ASSERT_TRUE(sweep(false, hooks_));
  const std::string all = text();
  const auto second = all.find('\n') + 1;
  write(all.substr(0, second) + "{\"index\": 99}\n" + all.substr(second));
  const auto resumed = sweep(true, hooks_);
  ASSERT_FALSE(resumed);
  EXPECT_THAT(resumed.error().message, HasSubstr("line 2"));
}

TEST_F(JournalTest, SaysWhenItCannotBeWritten) {
  path_ = "/nonexistent-folder/sweep.journal";
  const auto failed = sweep(false, hooks_);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().reason, Reason::unwritable_output);
  EXPECT_TRUE(machine_.log.empty()) << "checked before measuring starts";
}

}  // namespace
}  // namespace artune
